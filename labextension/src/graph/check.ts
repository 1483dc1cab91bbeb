// Validates data as a graph.
//
// Input: whatever a notebook or a kernel holds. Output: a graph in which every field has its type, missing ones filled
// in, or a line with the error.

import type { TranslationBundle } from "@jupyterlab/translation";

import type { GraphView, NodeView, UserLine } from "../generated/displays.ts";
import { MOST_DRAWN } from "../limits.ts";

type Loose = Record<string, unknown>;

/** Parses a graph; returns an error text for other data. */
export function checkGraph(data: unknown, trans: TranslationBundle): GraphView | string {
  if (!isRecord(data) || !Array.isArray(data.nodes) || !Array.isArray(data.inputs)) {
    return trans.__("This graph cannot be shown: it is not one.");
  }
  const all = data.nodes.length + data.inputs.length;
  if (all > MOST_DRAWN) {
    return trans.__("This graph cannot be shown: it has %1 operations, more than %2.", all, MOST_DRAWN);
  }
  const nodes = data.nodes.map((node) => checkNode(node, 0));
  return {
    name: text(data.name).slice(0, 200),
    ops: typeof data.ops === "number" ? data.ops : nodes.length,
    transformed: data.transformed === true,
    inputs: data.inputs.map((node) => ({ ...checkNode(node, 0), op: "input" })),
    nodes,
    outputs: texts(data.outputs),
    kernels: [...new Set(nodes.map((node) => node.kernel).filter(Boolean))],
    listing: text(data.listing).slice(0, 200_000),
  };
}

function checkNode(data: unknown, depth: number): NodeView {
  const node = isRecord(data) ? data : {};
  return {
    name: text(node.name),
    op: text(node.op),
    sort: text(node.sort),
    type: text(node.type),
    dtype: text(node.dtype),
    shape: texts(node.shape),
    call: text(node.call).slice(0, 2000),
    inputs: texts(node.inputs),
    where: line(node.where),
    kernel: text(node.kernel),
    backward: node.backward === true,
    inside: depth < 20 && Array.isArray(node.inside) ? node.inside.map((inner) => checkNode(inner, depth + 1)) : [],
  };
}

function line(data: unknown): UserLine {
  const where = isRecord(data) ? data : {};
  return {
    file: text(where.file),
    line: typeof where.line === "number" ? where.line : 0,
    column: null,
    end_column: null,
    function: text(where.function),
    text: text(where.text).slice(0, 500),
    end_line: typeof where.end_line === "number" ? where.end_line : 0,
  };
}

function isRecord(value: unknown): value is Loose {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}
