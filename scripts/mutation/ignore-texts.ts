/**
 * Leaves texts for people unchanged: sentences and causes of errors, lines of the log, and the help of metrics. Tests check
 * codes, states and numbers.
 */

/** What is read here of a path in the syntax tree (`NodePath` of Babel). */
interface Path {
  readonly node: Node;
  readonly parent: Node | null;
  /** The list of the parent that contains the node, such as `arguments`. */
  readonly listKey?: string;
  readonly parentPath: Path | null;
}

interface Node {
  readonly type: string;
  readonly name?: string;
  readonly value?: unknown;
  readonly callee?: Node;
  readonly object?: Node;
  readonly property?: Node;
  /** Of a private name. */
  readonly id?: Node;
  readonly key?: Node;
  readonly quasis?: readonly { readonly value: { readonly raw: string } }[];
}

const LOG_METHODS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'];

export const strykerPlugins = [
  { kind: 'Ignore', name: 'texts', value: { shouldIgnore: reasonToIgnore } },
];

function reasonToIgnore(path: Path): string | undefined {
  if (isSentence(path.node) && isInError(path)) return 'a text of an error';
  if (path.node.type === 'ObjectProperty' && path.node.key?.name === 'cause') return 'a cause';
  if (path.node.type === 'ObjectProperty' && path.node.key?.name === 'help') return 'a help text';
  if (path.listKey !== 'arguments') return undefined;
  const isFaultText = nameOf(path.parent?.callee) === 'onFault' && isText(path.node);
  return isFaultText || isLogCall(path.parent) ? 'a line of the log' : undefined;
}

/** Whether this is a text with a space, which no code has. */
function isSentence({ type, value, quasis = [] }: Node): boolean {
  if (type === 'StringLiteral') return String(value).includes(' ');
  return type === 'TemplateLiteral' && quasis.some((part) => part.value.raw.includes(' '));
}

function isText({ type }: Node): boolean {
  return type === 'StringLiteral' || type === 'TemplateLiteral';
}

function isInError({ parent, parentPath, listKey }: Path): boolean {
  if (parent === null || parentPath === null || parent.type === 'BlockStatement') return false;
  const isArgument = parent.type === 'NewExpression' && listKey === 'arguments';
  if (isArgument && /(Error|Failure)$/.test(parent.callee?.name ?? '')) return true;
  return isInError(parentPath);
}

function isLogCall(node: Node | null): boolean {
  const callee = node?.callee;
  if (callee?.type !== 'MemberExpression' || !LOG_METHODS.includes(nameOf(callee))) return false;
  return /log(ger)?$/i.test(nameOf(callee.object));
}

/** The last part of a name such as `this.#options.logger`. */
function nameOf({ name, property, id }: Partial<Node> = {}): string {
  return name ?? (property === undefined ? (id?.name ?? '') : nameOf(property));
}
