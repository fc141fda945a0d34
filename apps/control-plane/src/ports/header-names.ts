/** Headers that concern one connection only. https://www.rfc-editor.org/rfc/rfc9110#section-7.6.1 */
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
] as const;

/** The names of the headers that do not pass: those of one connection, and those that `Connection` lists. */
export function connectionHeaders(connection: string | undefined): Set<string> {
  const listed = (connection ?? '').split(',').map((name) => name.trim().toLowerCase());
  return new Set([...HOP_BY_HOP, ...listed]);
}
