import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { LIMIT_VARIABLES, VARIABLES } from '../packages/config/src/variables.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const CONFIG = `${ROOT}packages/config/`;
/** The declarations that the properties of the configuration come from. */
const DECLARED_IN = [`${CONFIG}src/variables.ts`, `${CONFIG}src/config.ts`];
const SETTINGS = [...Object.keys(VARIABLES), ...Object.keys(LIMIT_VARIABLES)];

/** The source files of everything that runs, without the package that makes the configuration. */
function productionFiles(): string[] {
  return globSync('{apps,packages}/*/src/**/*.ts', { cwd: ROOT })
    .map((file) => ROOT + file)
    .filter((file) => !file.endsWith('.test.ts') && !file.startsWith(CONFIG));
}

function programOf(files: string[]): ts.Program {
  const { config } = ts.readConfigFile(`${ROOT}tsconfig.json`, ts.sys.readFile);
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, ROOT);
  return ts.createProgram(files, options);
}

/** The property that this node reads, if it is a read of a property with the name of a setting. */
function propertyRead(node: ts.Node, checker: ts.TypeChecker): ts.Symbol | undefined {
  if (ts.isPropertyAccessExpression(node)) {
    return SETTINGS.includes(node.name.text) ? checker.getSymbolAtLocation(node.name) : undefined;
  }
  if (ts.isBindingElement(node) && ts.isObjectBindingPattern(node.parent)) {
    const name = (node.propertyName ?? node.name).getText();
    if (!SETTINGS.includes(name)) return undefined;
    return checker.getPropertyOfType(checker.getTypeAtLocation(node.parent), name);
  }
  return undefined;
}

/** The settings that these files read from the configuration or a part of it. */
function settingsReadIn(files: string[]): Set<string> {
  const program = programOf(files);
  const checker = program.getTypeChecker();
  const found = new Set<string>();
  const visit = (node: ts.Node): void => {
    const symbol = propertyRead(node, checker);
    const declared = symbol?.declarations ?? [];
    if (declared.some((one) => DECLARED_IN.includes(one.getSourceFile().fileName))) {
      found.add(symbol?.name ?? '');
    }
    ts.forEachChild(node, visit);
  };
  for (const file of files) {
    const source = program.getSourceFile(file);
    if (source === undefined) throw new Error(`${file} is not part of the program`);
    visit(source);
  }
  return found;
}

test('every setting is read by the code that runs', { timeout: 240_000 }, () => {
  const read = settingsReadIn(productionFiles());
  const unread = SETTINGS.filter((name) => !read.has(name));
  expect(unread, 'settings that nothing reads from the type Config').toEqual([]);
});
