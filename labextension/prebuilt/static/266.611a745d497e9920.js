"use strict";(self.rspackChunktcompile=self.rspackChunktcompile||[]).push([[266],{646(t,o,e){var r=e(601),a=e.n(r),i=e(314),n=(e.n(i))()(a());n.push([t.id,`/* How tcompile looks in JupyterLab. All colours follow the theme; state is said by shape too, not by colour alone. */

:root {
  --tc-time-fused: #3d9a50; /* the colours of a report's bars */
  --tc-time-library: #4b8bbe;
  --tc-time-plain: #d98a1f;
  --tc-good: var(--jp-success-color1, #2e7d32);
  --tc-warn: var(--jp-warn-color1, #c77700);
  --tc-quiet: var(--jp-layout-color4, #9e9e9e);
  --tc-dim: var(--jp-ui-font-color2);
}

.tc-dim {
  color: var(--tc-dim);
}

.tc-sr {
  position: absolute;
  width: 1px;
  height: 1px;
  overflow: hidden;
  clip-path: inset(50%);
}

/* -- in the cell -- */

.cm-editor .cm-gutter.tc-gutter {
  width: 9px;
}

.cm-editor .cm-gutters:has(.tc-gutter):not(:has(.cm-lineNumbers)),
.cm-editor .cm-gutters:not(:has(.cm-lineNumbers)) .cm-gutter.tc-gutter {
  border-right: none;
  background: none;
}

.cm-editor .cm-gutter.tc-time-gutter {
  width: 34px;
}

.cm-editor .cm-gutters:has(.tc-time-gutter):not(:has(.cm-lineNumbers)),
.cm-editor .cm-gutters:not(:has(.cm-lineNumbers)) .cm-gutter.tc-time-gutter {
  border-right: none;
  background: none;
}

.tc-time-line {
  display: flex;
  align-items: center;
  height: 100%;
  padding: 0 3px;
}

.tc-time {
  display: flex;
  height: 6px;
  overflow: hidden;
  border-radius: 1px;
}

.tc-time-fused {
  background: var(--tc-time-fused);
}

.tc-time-library {
  background: var(--tc-time-library);
}

.tc-time-plain {
  background: var(--tc-time-plain);
}

.tc-hover-time {
  margin-top: 2px;
}

.tc-hover-ms {
  font-weight: 600;
}

.tc-bar {
  box-sizing: border-box;
  width: 4px;
  height: 100%;
  margin-left: 2px;
}

.tc-captured {
  background: var(--tc-good);
  opacity: 0.75;
}

.tc-broken {
  width: 0;
  border: solid transparent;
  border-width: 4px 0 4px 7px;
  border-left-color: var(--tc-warn);
  height: 8px;
  margin-top: 5px;
}

.tc-plain {
  border-left: 3px dotted var(--tc-quiet);
  background: none;
}

.tc-underline {
  text-decoration: underline wavy var(--tc-warn) 1px;
  text-underline-offset: 3px;
}

.cm-tooltip .tc-hover {
  max-width: 46em;
  padding: 6px 10px;
  font-family: var(--jp-ui-font-family);
  font-size: var(--jp-ui-font-size1);
  line-height: 1.45;
  color: var(--jp-ui-font-color1);
}

.tc-hover-head {
  color: var(--tc-warn);
  font-weight: 600;
}

.tc-hover a {
  color: var(--jp-content-link-color);
}

.tc-hint {
  padding-left: 1.1em;
  text-indent: -1.1em;
}

.tc-hint::before {
  content: "→ ";
  color: var(--tc-good);
}

.tc-hover code,
.tc-panel code,
.tc-about code {
  font-family: var(--jp-code-font-family);
  font-size: 0.92em;
  overflow-wrap: anywhere;
}

.tc-badge-line {
  display: flex;
  justify-content: flex-end;
  padding: 1px 4px 0 0;
}

.tc-badge {
  display: inline-flex;
  align-items: baseline;
  gap: 0.7em;
  padding: 0 8px;
  border: 1px solid var(--jp-border-color2);
  border-radius: 9px;
  background: var(--jp-layout-color1);
  color: var(--jp-ui-font-color2);
  font-family: var(--jp-ui-font-family);
  font-size: var(--jp-ui-font-size0);
  line-height: 17px;
  cursor: pointer;
}

.tc-badge:hover,
.tc-badge:focus-visible {
  border-color: var(--jp-brand-color1);
  color: var(--jp-ui-font-color1);
}

.tc-stale {
  opacity: 0.5;
  font-style: italic;
}

.tc-dot {
  display: inline-block;
  width: 6px;
  height: 6px;
  border-radius: 3px;
  background: var(--jp-brand-color1);
  align-self: center;
}

.tc-breaks,
.tc-slower {
  color: var(--tc-warn);
}

.tc-faster {
  color: var(--tc-good);
}

/* -- the stance -- */

.tc-stance-box {
  display: inline-flex;
  align-items: center;
  gap: 4px;
  height: 100%;
}

.tc-stance-box[data-stance=""],
.tc-no-stance .jp-Toolbar .tc-stance-box,
.tc-no-stance .jp-StatusBar-Widget .tc-stance-box {
  display: none;
}

.tc-stance {
  field-sizing: content;
  width: auto;
  max-width: 15em;
  border: none;
  background: transparent;
  color: var(--jp-ui-font-color1);
  font-size: var(--jp-ui-font-size1);
  font-family: var(--jp-ui-font-family);
}

.tc-stance option,
.tc-select option {
  background: var(--jp-layout-color1);
  color: var(--jp-ui-font-color1);
}

.tc-stance-box:not([data-stance="default"]) .tc-dot {
  background: var(--tc-warn);
}

/* -- the panel -- */

.tc-panel {
  display: flex;
  flex-direction: column;
  background: var(--jp-layout-color1);
  color: var(--jp-ui-font-color1);
  font-size: var(--jp-ui-font-size1);
  line-height: 1.5;
}

.tc-panel.lm-mod-hidden {
  display: none;
}

.tc-head {
  display: flex;
  min-height: 28px;
  padding: 2px 10px;
}

.tc-notice:empty {
  display: none;
}

.tc-notice {
  padding: 4px 10px 8px;
  color: var(--tc-dim);
}

.tc-tabs {
  display: flex;
  border-bottom: 1px solid var(--jp-border-color2);
}

.tc-tabs button {
  flex: 1 1 auto;
  min-width: 0;
  padding: 5px 3px;
  overflow: hidden;
  text-overflow: ellipsis;
  border: none;
  border-bottom: 2px solid transparent;
  background: none;
  color: var(--tc-dim);
  font: inherit;
  cursor: pointer;
}

.tc-tabs button[aria-selected="true"] {
  border-bottom-color: var(--jp-brand-color1);
  color: var(--jp-ui-font-color1);
}

.tc-place {
  flex: 1;
  min-height: 0;
  overflow: auto;
}

.tc-place[hidden] {
  display: none;
}

.tc-section {
  padding: 8px 10px;
}

.tc-fill {
  display: flex;
  flex-direction: column;
  box-sizing: border-box;
  min-height: 0;
}

.tc-section.tc-fill {
  height: 100%;
}

.tc-fill .tc-fill {
  flex: 1;
}

.tc-section h3 {
  margin: 10px 0 3px;
  font-size: var(--jp-ui-font-size1);
  font-weight: 600;
}

.tc-cell:first-child h3 {
  margin-top: 0;
}

.tc-cell-chosen {
  box-shadow:
    -6px 0 0 var(--jp-layout-color1),
    -8px 0 0 var(--jp-brand-color1);
}

.tc-panel details {
  padding-left: 10px;
}

/* What is not seen is not laid out: there may be hundreds. */
.tc-panel .tc-cell > details,
.tc-panel .tc-step {
  padding-left: 0;
  content-visibility: auto;
  contain-intrinsic-block-size: auto 1.6em;
}

.tc-panel summary {
  cursor: pointer;
  padding: 1px 0;
  overflow-wrap: anywhere;
}

.tc-panel summary .tc-bar {
  display: inline-block;
  height: 10px;
  margin: 0 5px 0 0;
  vertical-align: -1px;
}

.tc-panel summary .tc-bar.tc-broken {
  height: 0;
}

.tc-link {
  padding: 0;
  border: none;
  background: none;
  color: var(--jp-content-link-color);
  font: inherit;
  text-align: left;
  cursor: pointer;
}

.tc-link:hover {
  text-decoration: underline;
}

.tc-label {
  margin-top: 4px;
  color: var(--tc-dim);
}

.tc-guards {
  margin: 0;
  padding-left: 1.2em;
}

.tc-break {
  margin: 4px 0;
  padding-left: 8px;
  border-left: 2px solid var(--tc-warn);
}

.tc-break b {
  color: var(--tc-warn);
}

.tc-row {
  display: flex;
  flex-wrap: wrap;
  gap: 4px 10px;
  align-items: baseline;
  margin: 4px 0;
}

.tc-button,
.tc-select {
  padding: 1px 8px;
  border: 1px solid var(--jp-border-color1);
  border-radius: 3px;
  background: var(--jp-layout-color1);
  color: var(--jp-ui-font-color1);
  font: inherit;
}

.tc-button {
  cursor: pointer;
}

.tc-button:hover {
  background: var(--jp-layout-color2);
}

.tc-select {
  max-width: 100%;
}

.tc-phase {
  display: grid;
  grid-template-columns: 6em 1fr 5em;
  gap: 8px;
  align-items: center;
}

.tc-meter {
  height: 5px;
  border-radius: 2px;
  background: linear-gradient(
    to right,
    var(--jp-brand-color1) calc(100% * var(--tc-part)),
    var(--jp-layout-color3) calc(100% * var(--tc-part))
  );
}

.tc-number {
  text-align: right;
  font-variant-numeric: tabular-nums;
}

.tc-table {
  display: block;
  overflow-x: auto;
  border-collapse: collapse;
}

.tc-table th {
  color: var(--tc-dim);
  font-weight: 400;
}

.tc-table td code {
  overflow-wrap: normal;
}

.tc-table th,
.tc-table td {
  padding: 1px 8px 1px 0;
  text-align: left;
  vertical-align: baseline;
}

.tc-sides {
  display: grid;
  grid-template-columns: repeat(auto-fit, minmax(110px, 1fr));
  gap: 10px;
}

.tc-differs code {
  color: var(--tc-warn);
}

.tc-step {
  padding: 3px 0;
  border-bottom: 1px solid var(--jp-border-color2);
}

.tc-panel pre,
.tc-rendered pre {
  margin: 2px 0;
  font-family: var(--jp-code-font-family);
  font-size: 0.92em;
  line-height: 1.4;
  overflow: auto;
}

.tc-listing {
  max-height: 60vh;
  padding: 6px;
  border: 1px solid var(--jp-border-color2);
}

.tc-line {
  margin: 4px 0;
}

.tc-line pre {
  padding-left: 1.2em;
  color: var(--tc-dim);
}

.tc-page {
  padding: 12px 28px;
  overflow: auto;
}

/* -- the picture of a graph -- */

.tc-picture {
  position: relative;
  display: flex;
  flex: 1;
  min-height: 180px;
  border: 1px solid var(--jp-border-color2);
  border-radius: 4px;
  background: var(--jp-layout-color0);
}

.tc-rendered .tc-picture {
  height: min(60vh, 460px);
  max-width: 100%;
}

.tc-rendered {
  padding: 4px 0;
}

.tc-view {
  flex: 1;
  min-width: 0;
  overflow: auto;
  cursor: grab;
}

.tc-view:focus-visible {
  outline: 2px solid var(--jp-brand-color1);
  outline-offset: -2px;
}

.tc-dragged {
  cursor: grabbing;
}

/* Said only where it takes long enough to be read. */
.tc-busy {
  position: absolute;
  inset: 10px auto auto 14px;
  visibility: hidden;
}

.tc-picture[aria-busy="true"] .tc-busy {
  animation: tc-appear 0s 0.2s forwards;
}

@keyframes tc-appear {
  to {
    visibility: visible;
  }
}

.tc-room {
  margin: 0 auto;
  overflow: hidden;
}

/* A layer of its own: moving and stretching it draws nothing anew. */
.tc-svg {
  display: block;
  transform-origin: 0 0;
  will-change: transform;
}

.tc-tools {
  position: absolute;
  bottom: 14px;
  right: 18px;
  display: flex;
  gap: 2px;
}

.tc-tool {
  width: 24px;
  height: 24px;
  padding: 0;
  border: 1px solid var(--jp-border-color2);
  border-radius: 3px;
  background: var(--jp-layout-color1);
  color: var(--jp-ui-font-color1);
  cursor: pointer;
}

.tc-parts {
  position: absolute;
  top: 6px;
  left: 8px;
  display: flex;
  gap: 2px;
}

.tc-part {
  padding: 1px 8px;
  border: 1px solid var(--jp-border-color2);
  border-radius: 3px;
  background: var(--jp-layout-color1);
  color: var(--jp-ui-font-color2);
  font-size: var(--jp-ui-font-size1);
  cursor: pointer;
}

.tc-part[aria-pressed="true"] {
  border-color: var(--jp-brand-color1);
  color: var(--jp-ui-font-color1);
}

.tc-tool:hover {
  background: var(--jp-layout-color2);
}

.tc-svg text {
  fill: var(--jp-ui-font-color1);
  font-family: var(--jp-code-font-family);
  font-size: 12px;
}

.tc-svg .tc-title {
  font-weight: 600;
}

.tc-svg .tc-detail {
  font-size: 10.5px;
  opacity: 0.75;
}

.tc-edge {
  fill: none;
  stroke: var(--jp-ui-font-color3);
  stroke-width: 1.2px;
}

.tc-hot {
  stroke: var(--jp-brand-color1);
  stroke-width: 2px;
}

.tc-arrow {
  fill: var(--jp-ui-font-color3);
}

.tc-box {
  --tc-sort: #64748b;
  cursor: pointer;
}

.tc-ground {
  fill: var(--jp-layout-color1);
}

.tc-face {
  fill: var(--tc-sort);
  fill-opacity: 0.14;
  stroke: var(--tc-sort);
  stroke-width: 1.2px;
}

.tc-box:hover .tc-face {
  fill-opacity: 0.3;
}

/* However small a box is drawn, its outline can be seen. */
.tc-bare {
  vector-effect: non-scaling-stroke;
  stroke-width: 1.5px;
}

.tc-sort-pointwise {
  --tc-sort: #3b82f6;
}

.tc-sort-reduction {
  --tc-sort: #d97706;
}

.tc-sort-movement {
  --tc-sort: #0d9488;
}

.tc-sort-creation {
  --tc-sort: #8b5cf6;
}

.tc-sort-opaque {
  --tc-sort: #e11d48;
}

.tc-sort-control {
  --tc-sort: #16a34a;
}

.tc-sort-kernel {
  --tc-sort: #b45309;
}

.tc-open .tc-ground {
  fill: none;
}

.tc-open .tc-face {
  fill-opacity: 0.06;
  stroke-dasharray: 5 3;
}

.tc-sort-output .tc-face {
  stroke-dasharray: 4 3;
}

.tc-selected .tc-face {
  stroke-width: 3px;
}

.tc-lit .tc-face {
  fill-opacity: 0.45;
  stroke-width: 2.5px;
}

.tc-far {
  opacity: 0.45;
}

.tc-about {
  min-height: 4.5em;
  padding: 6px 0;
  overflow-wrap: anywhere;
}

.tc-rendered .tc-about:empty {
  min-height: 0;
}
`,""]),e.d(o,{},{A:n})},314(t){t.exports=function(t){var o=[];return o.toString=function(){return this.map(function(o){var e="",r=void 0!==o[5];return o[4]&&(e+="@supports (".concat(o[4],") {")),o[2]&&(e+="@media ".concat(o[2]," {")),r&&(e+="@layer".concat(o[5].length>0?" ".concat(o[5]):""," {")),e+=t(o),r&&(e+="}"),o[2]&&(e+="}"),o[4]&&(e+="}"),e}).join("")},o.i=function(t,e,r,a,i){"string"==typeof t&&(t=[[null,t,void 0]]);var n={};if(r)for(var c=0;c<this.length;c++){var l=this[c][0];null!=l&&(n[l]=!0)}for(var p=0;p<t.length;p++){var d=[].concat(t[p]);r&&n[d[0]]||(void 0!==i&&(void 0===d[5]||(d[1]="@layer".concat(d[5].length>0?" ".concat(d[5]):""," {").concat(d[1],"}")),d[5]=i),e&&(d[2]&&(d[1]="@media ".concat(d[2]," {").concat(d[1],"}")),d[2]=e),a&&(d[4]?(d[1]="@supports (".concat(d[4],") {").concat(d[1],"}"),d[4]=a):d[4]="".concat(a)),o.push(d))}},o}},601(t){t.exports=function(t){return t[1]}},665(t,o,e){e.r(o);var r=e(72),a=e.n(r),i=e(825),n=e.n(i),c=e(659),l=e.n(c),p=e(56),d=e.n(p),s=e(540),u=e.n(s),f=e(113),b=e.n(f),g=e(646),m={};m.styleTagTransform=b(),m.setAttributes=d(),m.insert=l().bind(null,"head"),m.domAPI=n(),m.insertStyleElement=u(),a()(g.A,m);let h=g.A&&g.A.locals?g.A.locals:void 0;e.d(o,{},{default:h})},72(t){var o=[];function e(t){for(var e=-1,r=0;r<o.length;r++)if(o[r].identifier===t){e=r;break}return e}function r(t,r){for(var a={},i=[],n=0;n<t.length;n++){var c=t[n],l=r.base?c[0]+r.base:c[0],p=a[l]||0,d="".concat(l," ").concat(p);a[l]=p+1;var s=e(d),u={css:c[1],media:c[2],sourceMap:c[3],supports:c[4],layer:c[5]};if(-1!==s)o[s].references++,o[s].updater(u);else{var f=function(t,o){var e=o.domAPI(o);return e.update(t),function(o){o?(o.css!==t.css||o.media!==t.media||o.sourceMap!==t.sourceMap||o.supports!==t.supports||o.layer!==t.layer)&&e.update(t=o):e.remove()}}(u,r);r.byIndex=n,o.splice(n,0,{identifier:d,updater:f,references:1})}i.push(d)}return i}t.exports=function(t,a){var i=r(t=t||[],a=a||{});return function(t){t=t||[];for(var n=0;n<i.length;n++){var c=e(i[n]);o[c].references--}for(var l=r(t,a),p=0;p<i.length;p++){var d=e(i[p]);0===o[d].references&&(o[d].updater(),o.splice(d,1))}i=l}}},659(t){var o={};t.exports=function(t,e){var r=function(t){if(void 0===o[t]){var e=document.querySelector(t);if(window.HTMLIFrameElement&&e instanceof window.HTMLIFrameElement)try{e=e.contentDocument.head}catch(t){e=null}o[t]=e}return o[t]}(t);if(!r)throw Error("Couldn't find a style target. This probably means that the value for the 'insert' parameter is invalid.");r.appendChild(e)}},540(t){t.exports=function(t){var o=document.createElement("style");return t.setAttributes(o,t.attributes),t.insert(o,t.options),o}},56(t,o,e){t.exports=function(t){var o=e.nc;o&&t.setAttribute("nonce",o)}},825(t){t.exports=function(t){if("u"<typeof document)return{update:function(){},remove:function(){}};var o=t.insertStyleElement(t);return{update:function(e){var r,a,i;r="",e.supports&&(r+="@supports (".concat(e.supports,") {")),e.media&&(r+="@media ".concat(e.media," {")),(a=void 0!==e.layer)&&(r+="@layer".concat(e.layer.length>0?" ".concat(e.layer):""," {")),r+=e.css,a&&(r+="}"),e.media&&(r+="}"),e.supports&&(r+="}"),(i=e.sourceMap)&&"u">typeof btoa&&(r+="\n/*# sourceMappingURL=data:application/json;base64,".concat(btoa(unescape(encodeURIComponent(JSON.stringify(i))))," */")),t.styleTagTransform(r,o,t.options)},remove:function(){var t;null===(t=o).parentNode||t.parentNode.removeChild(t)}}}},113(t){t.exports=function(t,o){if(o.styleSheet)o.styleSheet.cssText=t;else{for(;o.firstChild;)o.removeChild(o.firstChild);o.appendChild(document.createTextNode(t))}}}}]);