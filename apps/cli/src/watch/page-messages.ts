import type { DesktopInput } from './input-queue.ts';

/** From the command to its page, as JSON; updates of the view are binary messages beside these. */
export type ToPage =
  /** The first message. `token`: with which this page can come back, for example when it is loaded again. */
  | {
      readonly type: 'hello';
      readonly session: string;
      readonly token: string;
      readonly control: boolean;
    }
  | { readonly type: 'status'; readonly status: 'connected' | 'reconnecting' }
  /** The last message. */
  | { readonly type: 'ended'; readonly reason: string }
  /** Something to show for a moment. */
  | { readonly type: 'notice'; readonly text: string };

/** From the page to the command, as JSON. */
export type FromPage =
  /** The update with this number has been drawn. */
  { readonly type: 'drawn'; readonly number: number } | ({ readonly type: 'input' } & DesktopInput);

/** Parses a message of the page. Undefined when it is none; what an input says is for the desktop to check. */
export function readFromPage(data: Buffer, isBinary: boolean): FromPage | undefined {
  if (isBinary) return undefined;
  try {
    const value: unknown = JSON.parse(data.toString());
    return isFromPage(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isFromPage(value: unknown): value is FromPage {
  if (typeof value !== 'object' || value === null) return false;
  const { type, number, name, arguments: input } = value as Record<string, unknown>;
  if (type === 'drawn') return Number.isSafeInteger(number);
  const isCall = name === 'mouse' || name === 'keyboard';
  return type === 'input' && isCall && typeof input === 'object' && input !== null;
}
