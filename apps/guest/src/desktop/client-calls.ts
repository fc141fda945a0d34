import { LIMITS } from '@svc/contract';
import { z } from 'zod';
import type { Desktop } from './desktop.ts';
import type { DesktopResult } from './tools.ts';

const BUTTON = z.enum(['left', 'middle', 'right']).default('left');
const AT = { x: z.number(), y: z.number() };

const SCREENSHOT = z.strictObject({});
const MOUSE = z.discriminatedUnion('action', [
  z.strictObject({ action: z.literal('move'), ...AT }),
  z.strictObject({ action: z.literal('click'), ...AT, button: BUTTON }),
  z.strictObject({ action: z.literal('double_click'), ...AT, button: BUTTON }),
  z.strictObject({ action: z.literal('down'), ...AT, button: BUTTON }),
  z.strictObject({ action: z.literal('up'), ...AT, button: BUTTON }),
  z.strictObject({
    action: z.literal('drag'),
    ...AT,
    to_x: z.number(),
    to_y: z.number(),
    button: BUTTON,
  }),
  z.strictObject({
    action: z.literal('scroll'),
    ...AT,
    dx: z.number().default(0),
    dy: z.number().default(0),
  }),
]);
const KEYBOARD = z.discriminatedUnion('action', [
  z.strictObject({ action: z.literal('type'), text: z.string() }),
  z.strictObject({ action: z.literal('press'), keys: z.string() }),
]);

/**
 * Carries out a client's `tool_call` of the desktop, see `DesktopCalls` in `@svc/contract`. Rejects like the operations
 * of {@link Desktop}, and with a ZodError for arguments that do not fit. Undefined for a name that is none of them.
 */
export function runClientCall(
  desktop: Desktop,
  { name, arguments: input }: { readonly name: string; readonly arguments: unknown },
  signal: AbortSignal,
): Promise<DesktopResult> | undefined {
  if (name === 'screenshot') return screenshot(desktop, input, signal);
  if (name === 'mouse') return mouse(desktop, input, signal);
  if (name === 'keyboard') return keyboard(desktop, input, signal);
  return undefined;
}

async function screenshot(desktop: Desktop, input: unknown, signal: AbortSignal) {
  SCREENSHOT.parse(input);
  const image = await desktop.screenshot({ maxBytes: LIMITS.screenshotBytes }, signal);
  return { text: `A picture of ${image.data.length} bytes follows.`, image };
}

async function mouse(desktop: Desktop, input: unknown, signal: AbortSignal) {
  const call = MOUSE.parse(input);
  const at = { x: call.x, y: call.y };
  if (call.action === 'move') await desktop.move(at, signal);
  else if (call.action === 'scroll') await desktop.scroll(at, call, signal);
  else if (call.action === 'drag') {
    await desktop.drag(at, { x: call.to_x, y: call.to_y }, call.button, signal);
  } else if (call.action === 'click') await desktop.click(at, call.button, signal);
  else if (call.action === 'double_click') await desktop.doubleClick(at, call.button, signal);
  else if (call.action === 'down') await desktop.down(at, call.button, signal);
  else await desktop.up(at, call.button, signal);
  return { text: 'Done.' };
}

async function keyboard(desktop: Desktop, input: unknown, signal: AbortSignal) {
  const call = KEYBOARD.parse(input);
  if (call.action === 'type') await desktop.type(call.text, signal);
  else await desktop.press(call.keys, signal);
  return { text: 'Done.' };
}
