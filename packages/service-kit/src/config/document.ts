import type { Variable } from './kind.ts';
import { ALL_VARIABLES } from './variables.ts';

/** The documentation of every variable, as a Markdown page. */
export function configurationPage(): string {
  const rows = ALL_VARIABLES.map(
    (variable) =>
      `| \`${variable.name}\` | ${cell(variable.kind.expects)} | ${defaultOf(variable)} | ${cell(variable.meaning)} |`,
  );
  return `${HEAD}\n${rows.join('\n')}\n`;
}

const HEAD = `# Configuration

The service is configured by its environment, read once at start. Everything has a default that works on one machine.
Every problem is reported at once, and an empty value counts as none.

This page is generated: \`node packages/service-kit/src/config/print-page.ts > docs/configuration.md\`.

| Variable | Value | Default | Meaning |
|---|---|---|---|`;

function defaultOf({ documentedDefault, fallback }: Variable<unknown>): string {
  if (documentedDefault !== undefined) return documentedDefault;
  return fallback === undefined || fallback === '' ? 'none' : `\`${fallback}\``;
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}
