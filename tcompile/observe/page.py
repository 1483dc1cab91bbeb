"""The pages of the debug folder.

Input: the facts that ``folder`` has gathered about a compile, and a row for each compile.
Output: self-contained HTML: no scripts, no external files, light or dark like the reader's system.
Why: the folder can be sent and opened anywhere. This module knows graphs only as objects that draw and print
themselves.
"""

from __future__ import annotations

import html
import platform
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Any

from tcompile.observe.events import CompileFinished, CompileStarted, FellBack, KernelCompiled, PassFinished
from tcompile.observe.source_location import UserLine, file_label
from tcompile.records import dataclass

_STYLE = """
:root{color-scheme:light dark;--bg:#fff;--panel:#f6f7f9;--line:#dfe3e8;--fg:#1f2937;--dim:#64748b;--hot:#d97706;
--link:#2563eb;--a:#3b82f6;--b:#0d9488;--c:#d97706;--d:#8b5cf6;--e:#e11d48;--mark:#fef3c7}
@media(prefers-color-scheme:dark){:root{--bg:#111418;--panel:#191d23;--line:#2d333b;--fg:#e5e7eb;--dim:#94a3b8;
--hot:#fbbf24;--link:#60a5fa;--mark:#3f3413}}
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif}
main{max-width:1100px;margin:0 auto;padding:28px 24px 80px}a{color:var(--link);text-decoration:none}
a:hover{text-decoration:underline}h1{font-size:24px;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:16px;margin:30px 0 8px}p,dl{margin:4px 0}.dim{color:var(--dim)}
pre,code{font:12.5px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}
pre{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:10px 12px;margin:6px 0;
overflow:auto;max-height:520px}table{border-collapse:collapse;width:100%}
th{font-weight:600;color:var(--dim);font-size:13px}th,td{text-align:left;padding:5px 12px 5px 0;
border-bottom:1px solid var(--line);vertical-align:top}td.n,th.n{text-align:right;white-space:nowrap;
font-variant-numeric:tabular-nums}
td{overflow-wrap:anywhere}details{margin:6px 0}summary{cursor:pointer}.tag{border-radius:99px;padding:1px 9px;
font-size:12.5px;border:1px solid var(--line);margin-right:6px;white-space:nowrap}.warn{color:var(--hot)}
.bar{display:flex;height:18px;border-radius:5px;overflow:hidden;background:var(--panel);margin:10px 0 4px}
.bar span{min-width:2px}.key i{display:inline-block;width:10px;height:10px;border-radius:3px;margin:0 5px 0 12px}
.wide{overflow:auto;max-height:640px;border:1px solid var(--line);border-radius:8px}.wide svg{display:block}
.at{background:var(--mark);display:inline-block;min-width:100%}
"""
_COLOURS = ("var(--a)", "var(--b)", "var(--c)", "var(--d)", "var(--e)")


@dataclass
class PageRow:
    """One compile in the index: its folder's name, its first event, and its facts so far."""

    name: str
    started: CompileStarted
    finished: CompileFinished | None = None
    ops: int = 0
    kernels: int = 0
    breaks: int = 0


def kernels_file(language: str) -> str:
    """Returns the name of the file with the kernels' text in this language."""
    return "kernels.ll" if language == "LLVM IR" else "kernels.triton"


@dataclass
class CompilePage:
    """The contents of the page of one compile."""

    row: PageRow
    source: list[tuple[int, str]] = field(default_factory=list)
    breaks: list[UserLine] = field(default_factory=list)
    captured: Any = None
    final: Any = None
    guards: str = ""
    # each with its listing ("" if nothing changed) and the listing's file
    passes: list[tuple[PassFinished, str, str]] = field(default_factory=list)
    kernels: list[KernelCompiled] = field(default_factory=list)
    ir: list[str] = field(default_factory=list)
    assembly: list[str] = field(default_factory=list)
    programs: list[tuple[str, str, str]] = field(default_factory=list)  # title, text, file
    notes: list[tuple[str, str, str, bool]] = field(default_factory=list)  # title, text, file, opened

    def add(self, title: str, text: str, file: str = "", opened: bool = False) -> None:
        """Adds a section of text."""
        self.notes.append((title, text, file, opened))

    def html(self) -> str:
        """Returns the page."""
        return _document(self.row.started.function, self._sections())

    def _sections(self) -> Iterator[str]:
        started, finished = self.row.started, self.row.finished
        yield "<p><a href='../index.html'>all compiles</a></p>"
        yield f"<h1>{_text(started.function)}</h1>"
        outcome = finished.outcome if finished is not None else "did not finish"
        tags = [f"compile {started.compile_id}", outcome, finished.backend if finished is not None else ""]
        tags += [f"{_count(self.row.ops, 'op')}", _count(self.row.kernels, "kernel")]
        tags += [f"cell {started.cell}" if started.cell else ""]
        tags += [f"defined in {started.defined_in}" if started.defined_in else ""]
        yield "<p>" + "".join(f"<span class='tag'>{_text(tag)}</span>" for tag in tags if tag) + "</p>"
        first = started.reason.partition("\n")[0]
        yield f"<p class='dim'>{_text(_place(started.where))} · {_text(first)}</p>"
        if finished is not None:
            yield _bar(finished.phases, finished.ms)
        for title, text, file, opened in self.notes:
            yield _folded(title, _pre(text), file, opened)
        if self.source:
            yield f"<h2>The code</h2>{self._code()}"
        if self.captured is not None:
            yield "<h2>The graph</h2>"
            yield f"<div class='wide'>{self.captured.svg()}</div>"
            yield _folded("As a listing", _pre(self.captured.readable()), "graph.txt")
            yield _folded("As a script that runs, and compares the backends", _pre(self.captured.code), "graph.py")
        if self.guards:
            yield "<h2>The guards</h2><p class='dim'>Under which the compiled code is used again.</p>"
            yield _pre(self.guards)
        if self.passes:
            yield f"<h2>The transforms</h2>{self._transforms()}"
        if self.kernels:
            yield f"<h2>The kernels</h2>{self._kernels()}"
        if self.programs:
            yield "<h2>The programs</h2>"
            yield from (_folded(title, _pre(text), file) for title, text, file in self.programs)
        yield "<h2>Files</h2><p>" + " · ".join(f"<a href='{name}'>{name}</a>" for name in self._files()) + "</p>"

    def _code(self) -> str:
        at = {line.line for line in self.breaks if line.file == self.row.started.where.file}
        rows = []
        for number, line in self.source:
            text = f"<span class='dim'>{number:>5}</span>  {_text(line)}"
            rows.append(f"<span class='at'>{text}</span>" if number in at else text)
        return "<pre>" + "\n".join(rows) + "</pre>"

    def _transforms(self) -> str:
        parts = []
        for event, listing, file in self.passes:
            counts = f"{event.before} → {event.after} ops, {event.ms:.2f} ms"
            if listing:
                parts.append(_folded(f"{event.name}: {counts}", _pre(listing), file))
            else:
                parts.append(f"<p class='dim'>{_text(event.name)}: {counts}, nothing changed</p>")
        return "".join(parts)

    def _kernels(self) -> str:
        groups = {event.kernel: event.nodes for event in self.kernels}
        drawn = ""
        if self.final is not None:
            drawn = f"<div class='wide'>{self.final.svg(groups)}</div>"
        rows = "".join(
            f"<tr><td><code>{_text(event.kernel)}</code></td><td>{_text(event.description)}</td>"
            f"<td><code>{_text(', '.join(event.nodes))}</code></td><td>{_text(_lines(event.lines))}</td>"
            f"<td class='n'>{event.ms:.2f}</td></tr>"
            for event in self.kernels
        )
        head = "<tr><th>kernel</th><th>what</th><th>operations</th><th>lines</th><th class='n'>ms</th></tr>"
        language = self.kernels[0].language if self.kernels else ""
        ir = _folded(language, _pre("\n".join(self.ir)), kernels_file(language)) if self.ir else ""
        assembly = _folded("Assembly", _pre("\n".join(self.assembly)), "kernels.s") if self.assembly else ""
        return f"{drawn}<table>{head}{rows}</table>{ir}{assembly}"

    def _files(self) -> Iterator[str]:
        if self.captured is not None:
            yield from ("graph.py", "graph.txt", "graph.svg", "guards.txt")
        yield from (file for _, _, file, _ in self.notes if file)
        yield from ("kernels.txt",) if self.kernels else ()
        yield from (file for _, _, file in self.programs)
        yield from ("times.json", "events.jsonl")


def index(name: str, rows: Iterable[PageRow], fallbacks: Iterable[FellBack]) -> str:
    """Returns the page over all compiles."""
    rows = list(rows)
    longest = max((row.finished.ms for row in rows if row.finished is not None), default=1.0)
    total = sum(row.finished.ms for row in rows if row.finished is not None)
    parts = [
        "<h1>What tcompile compiled</h1>",
        f"<p class='dim'>{_text(' '.join(sys.argv)[:200] or 'interactive')} · Python {platform.python_version()} · "
        f"{_text(platform.platform())} · {_text(name)} · written {time.strftime('%H:%M:%S')}</p>",
        f"<p>{_count(len(rows), 'compile')}, {total:.1f} ms</p>",
    ]
    if rows:
        head = (
            "<tr><th>function</th><th>where</th><th>why</th><th class='n'>ops</th><th class='n'>kernels</th>"
            "<th class='n'>breaks</th><th class='n'>ms</th><th style='width:18%'></th></tr>"
        )
        parts.append(f"<table>{head}{''.join(_row(row, longest) for row in rows)}</table>")
    lines = list(dict.fromkeys(f"{event.function}: {event.reason}: {event.detail}" for event in fallbacks))
    if lines:
        parts.append("<h2>Ran in plain Python</h2>" + _pre("\n".join(lines)))
    return _document("tcompile", parts)


def _row(row: PageRow, longest: float) -> str:
    finished, started = row.finished, row.started
    page = f"{row.name}/index.html" if finished is not None else f"{row.name}/"
    name = f"<a href='{page}'>{_text(started.function[:80])}</a>"
    ms = f"{finished.ms:.1f}" if finished is not None else "<span class='warn'>did not finish</span>"
    width = 100 * finished.ms / (longest or 1) if finished is not None else 0
    bar = f"<div style='height:10px;border-radius:3px;margin-top:6px;background:var(--a);width:{width:.0f}%'></div>"
    breaks = f"<span class='warn'>{row.breaks}</span>" if row.breaks else "0"
    why = started.reason.partition("\n")[0]
    plain = " <span class='tag'>plain</span>" if finished is not None and finished.outcome == "plain" else ""
    return (
        f"<tr><td>{name}{plain} <span class='dim' style='white-space:nowrap'>{_text(started.compile_id)}</span></td>"
        f"<td class='dim'>{_text(_place(started.where))}</td><td class='dim'>{_text(why[:120])}</td>"
        f"<td class='n'>{row.ops}</td><td class='n'>{row.kernels}</td><td class='n'>{breaks}</td>"
        f"<td class='n'>{ms}</td><td>{bar}</td></tr>"
    )


def _bar(phases: dict[str, float], total: float) -> str:
    """Returns the phases as parts of one bar."""
    colours = [_COLOURS[n % len(_COLOURS)] for n in range(len(phases))]
    pairs = list(zip(phases.items(), colours, strict=True))
    bar = "".join(
        f"<span title='{_text(phase)}' style='width:{100 * ms / (total or 1):.2f}%;background:{colour}'></span>"
        for (phase, ms), colour in pairs
    )
    key = "".join(f"<i style='background:{colour}'></i>{_text(phase)} {ms:.2f}" for (phase, ms), colour in pairs)
    return f"<div class='bar'>{bar}</div><p class='key dim'>{total:.2f} ms{key}</p>"


def _place(line: UserLine) -> str:
    label = file_label(line.file)
    return f"{label if len(label) < 70 else '…' + label[-68:]}, line {line.line}" if line.file else ""


def _lines(lines: Iterable[UserLine]) -> str:
    return ", ".join(dict.fromkeys(str(line.line) for line in lines if line.line))


def _folded(title: str, body: str, file: str = "", opened: bool = False) -> str:
    link = f" <a href='{_text(file)}'>{_text(file)}</a>" if file else ""
    return f"<details{' open' if opened else ''}><summary>{_text(title)}{link}</summary>{body}</details>"


def _document(title: str, parts: Iterable[str]) -> str:
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width'>"
        f"<title>{_text(title)}</title><style>{_STYLE}</style></head><body><main>{''.join(parts)}</main></body></html>"
    )


def _pre(text: str) -> str:
    return f"<pre>{_text(text)}</pre>"


def _text(text: str) -> str:
    return html.escape("".join(c if c.isprintable() or c in "\n\t" else "�" for c in text))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


__all__ = ["CompilePage", "PageRow", "index"]
