import type { Variable } from './kind.ts';
import { ALL_VARIABLES, CLIENT_VARIABLES } from './variables.ts';

/** A Markdown page that documents every variable. */
export function configurationPage(): string {
  return [
    HEAD,
    TABLE,
    ...ALL_VARIABLES.map(rowOf),
    CLIENT_HEAD,
    TABLE,
    ...CLIENT_VARIABLES.map(rowOf),
    '',
  ].join('\n');
}

function rowOf(variable: Variable<unknown>): string {
  const { name, kind, meaning } = variable;
  return `| \`${name}\` | ${cell(kind.expects)} | ${defaultOf(variable)} | ${cell(meaning)} |`;
}

const HEAD = `# Configuration

The service reads its configuration from environment variables, once at start. Every setting has a default that works on a
single machine. All problems are reported together, and an empty value counts as unset.

A variable that starts with \`SVC_\` and that nothing reads stops the start of a service, because it is probably
misspelt. \`svc doctor\` reports the same problems. Commands that only use or inspect a service,
such as \`svc sandbox\`, \`svc status\` and \`svc down\`, ignore it.

This page is generated: \`npm run docs\`.
`;

const TABLE = `| Variable | Value | Default | Meaning |
|---|---|---|---|`;

const CLIENT_HEAD = `
## Client commands

Client commands also read \`SVC_BASE_URL\`, \`SVC_CA_FILE\` and \`SVC_DATA_DIR\`. The service ignores the variables of this
table, so both can run in one environment.
`;

function defaultOf({ documentedDefault, fallback }: Variable<unknown>): string {
  if (documentedDefault !== undefined) return documentedDefault;
  return fallback === undefined || fallback === '' ? 'none' : `\`${fallback}\``;
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}
