/**
 * The names of files and directories for the components of keys. Only `a-z`, `0-9`, `-` and `_` stand for themselves,
 * so that names neither have a meaning for the file system nor depend on its treatment of case or encodings.
 */

/** Ends the name of a file, so that the keys `a` and `a/b` can both exist. */
const FILE_MARK = '.o';
const PLAIN = /^[a-z0-9_-]$/;

/** The path of the object with these components, relative to the root. */
export function fileOf(components: readonly string[]): string {
  return `${directoryOf(components)}${FILE_MARK}`;
}

/** The path of the directory for keys that start with these components, relative to the root. */
export function directoryOf(components: readonly string[]): string {
  return components.map(encode).join('/');
}

/** The component that the name of a file stands for; undefined for a name that {@link fileOf} does not make. */
export function componentOfFile(name: string): string | undefined {
  return name.endsWith(FILE_MARK) ? decode(name.slice(0, -FILE_MARK.length)) : undefined;
}

/** The component that the name of a directory stands for; undefined for a name that {@link directoryOf} does not make. */
export function componentOfDirectory(name: string): string | undefined {
  return decode(name);
}

function encode(component: string): string {
  return Array.from(Buffer.from(component), (byte) => {
    const character = String.fromCharCode(byte);
    return PLAIN.test(character) ? character : `%${byte.toString(16).padStart(2, '0')}`;
  }).join('');
}

function decode(name: string): string | undefined {
  const bytes = name.replaceAll(/%([0-9a-f]{2})/g, (_match, hex) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  const component = Buffer.from(bytes, 'latin1').toString();
  return component !== '' && encode(component) === name ? component : undefined;
}
