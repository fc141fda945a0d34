import { type JsonObject, stringAt } from './json.ts';

/** The content of a tool's result: its texts, and the kind of every other part, such as a picture. */
export function textOfContent(parts: readonly JsonObject[]): string {
  return parts
    .map((part) => stringAt(part, 'text') ?? `[${stringAt(part, 'type') ?? 'nothing'}]`)
    .join('\n');
}
