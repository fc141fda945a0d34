import { z } from 'zod';

const Value = z.object({ value: z.unknown().optional() });

/** A node of `Accessibility.getFullAXTree`. */
export const AccessibilityNodes = z.object({
  nodes: z.array(
    z.object({
      nodeId: z.string(),
      ignored: z.boolean(),
      role: Value.optional(),
      name: Value.optional(),
      value: Value.optional(),
      properties: z.array(z.object({ name: z.string(), value: Value })).optional(),
      childIds: z.array(z.string()).optional(),
      backendDOMNodeId: z.number().optional(),
    }),
  ),
});
type AccessibilityNode = z.infer<typeof AccessibilityNodes>['nodes'][number];

/** Roles that only group others or repeat what is in their parents. */
const SILENT = new Set(['none', 'generic', 'InlineTextBox', 'LineBreak', 'RootWebArea']);
const STATES = new Set(['checked', 'disabled', 'expanded', 'level', 'pressed', 'selected']);
const MAX_DEPTH = 40;

/**
 * The accessibility tree as indented lines, such as `- button "Send" [ref=d1e7]`. A reference names an element of the
 * document with the given number, see {@link elementOf}.
 */
export function describeTree(nodes: readonly AccessibilityNode[], document: number): string {
  const byId = new Map(nodes.map((node) => [node.nodeId, node]));
  const lines: string[] = [];
  const visit = (id: string, depth: number, parentName: string): void => {
    const node = byId.get(id);
    if (node === undefined) return;
    const role = String(node.role?.value ?? 'none');
    const name = textOf(node.name);
    const isShown =
      !node.ignored && !SILENT.has(role) && !(role === 'StaticText' && name === parentName);
    if (isShown)
      lines.push(`${'  '.repeat(Math.min(depth, MAX_DEPTH))}${lineOf(node, role, name, document)}`);
    for (const child of node.childIds ?? []) {
      visit(child, isShown ? depth + 1 : depth, isShown ? name : parentName);
    }
  };
  const [root] = nodes;
  if (root !== undefined) visit(root.nodeId, 0, '');
  return lines.join('\n');
}

/** The element that a reference names: its number in the browser. Undefined if it is of another document, or none. */
export function elementOf(reference: string, document: number): number | undefined {
  const match = /^d(\d+)e(\d+)$/.exec(reference);
  return match?.[1] === String(document) ? Number(match[2]) : undefined;
}

function lineOf(node: AccessibilityNode, role: string, name: string, document: number): string {
  if (role === 'StaticText') return `- text: ${name}`;
  const parts = [`- ${role}`];
  if (name !== '') parts.push(JSON.stringify(name));
  for (const property of node.properties ?? []) {
    const { value } = property.value;
    if (!STATES.has(property.name) || value === false || value === 'false') continue;
    parts.push(
      value === true || value === 'true' ? `[${property.name}]` : `[${property.name}=${value}]`,
    );
  }
  if (node.backendDOMNodeId !== undefined)
    parts.push(`[ref=d${document}e${node.backendDOMNodeId}]`);
  const value = textOf(node.value);
  return value === '' ? parts.join(' ') : `${parts.join(' ')}: ${value}`;
}

function textOf(value: z.infer<typeof Value> | undefined): string {
  return value === undefined ? '' : String(value.value ?? '').trim();
}
