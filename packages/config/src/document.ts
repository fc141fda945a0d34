import type { Variable } from './kind.ts';
import { ALL_VARIABLES } from './variables.ts';

/** A Markdown page that documents every variable. */
export function configurationPage(): string {
  const rows = ALL_VARIABLES.map(
    (variable) =>
      `| \`${variable.name}\` | ${cell(variable.kind.expects)} | ${defaultOf(variable)} | ${cell(variable.meaning)} |`,
  );
  return `${HEAD}\n${rows.join('\n')}\n`;
}

const HEAD = `# Configuration

The service reads its configuration from environment variables, once at start. Every setting has a default that works on a
single machine. All problems are reported together, and an empty value counts as unset.

This page is generated: \`node packages/config/src/print-page.ts > docs/configuration.md\`.

| Variable | Value | Default | Meaning |
|---|---|---|---|`;

function defaultOf({ documentedDefault, fallback }: Variable<unknown>): string {
  if (documentedDefault !== undefined) return documentedDefault;
  return fallback === undefined || fallback === '' ? 'none' : `\`${fallback}\``;
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}
