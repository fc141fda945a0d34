import { z } from 'zod';
import {
  type Desktop,
  MAX_ELEMENTS,
  MAX_SCROLL_STEPS,
  MAX_TEXT_CHARS,
  MAX_WAIT_SECONDS,
} from './desktop.ts';
import type { Screenshot, UiElement, UiElements } from './element-server.ts';

/** The result of a tool of the desktop. */
export interface DesktopResult {
  readonly text: string;
  readonly image?: Screenshot;
}

/** A tool by which an agent uses the desktop. */
export interface DesktopTool<S extends z.ZodType = z.ZodType> {
  readonly name: string;
  readonly description: string;
  readonly input: S;
  /** Rejects like the operations of {@link Desktop}. */
  run(desktop: Desktop, input: z.infer<S>, signal: AbortSignal): Promise<DesktopResult>;
}

/** Largest picture for a model, in bytes: all vendors accept it, and several fit into a request. */
const MAX_IMAGE_BYTES = 700_000;
const DEFAULT_ELEMENTS = 150;

const X = z.number().int().describe('Pixels from the left.');
const Y = z.number().int().describe('Pixels from the top.');
const BUTTON = z.enum(['left', 'middle', 'right']).default('left');
const CLICK = z.object({ x: X, y: Y, button: BUTTON });

/** The tools of the desktop, for deictic and, through the MCP server, for the vendors' agents. */
export const DESKTOP_TOOLKIT: readonly DesktopTool[] = [
  define({
    name: 'desktop_screenshot',
    description:
      'Takes a picture of the desktop, which has 1280×800 pixels and a Chromium browser. With annotate, the picture shows the boxes and ids of the elements.',
    input: z.object({ annotate: z.boolean().default(false) }),
    async run(desktop, { annotate }, signal) {
      const image = await desktop.screenshot({ annotate, maxBytes: MAX_IMAGE_BYTES }, signal);
      return { text: 'This is the desktop now.', image };
    },
  }),
  define({
    name: 'desktop_elements',
    description:
      'Lists what is on the desktop (buttons, fields, links, windows …) with id, role, name, the position of its middle and its size. Ids stay the same as long as an element lives.',
    input: z.object({ limit: z.number().int().min(1).max(MAX_ELEMENTS).default(DEFAULT_ELEMENTS) }),
    async run(desktop, { limit }, signal) {
      return { text: listElements(await desktop.elements(limit, signal)) };
    },
  }),
  define({
    name: 'desktop_click_element',
    description: 'Clicks in the middle of an element that desktop_elements has listed.',
    input: z.object({ id: z.string().max(20), button: BUTTON }),
    async run(desktop, { id, button }, signal) {
      const element = await desktop.clickElement(id, button, signal);
      return { text: `Clicked ${describeElement(element)}` };
    },
  }),
  define({
    name: 'desktop_move',
    description: 'Moves the mouse.',
    input: z.object({ x: X, y: Y }),
    async run(desktop, at, signal) {
      await desktop.move(at, signal);
      return { text: `The mouse is at ${at.x},${at.y}.` };
    },
  }),
  define({
    name: 'desktop_click',
    description: 'Clicks at a position of the desktop.',
    input: CLICK,
    async run(desktop, { button, ...at }, signal) {
      await desktop.click(at, button, signal);
      return { text: `Clicked at ${at.x},${at.y}.` };
    },
  }),
  define({
    name: 'desktop_double_click',
    description: 'Double-clicks at a position of the desktop.',
    input: CLICK,
    async run(desktop, { button, ...at }, signal) {
      await desktop.doubleClick(at, button, signal);
      return { text: `Double-clicked at ${at.x},${at.y}.` };
    },
  }),
  define({
    name: 'desktop_drag',
    description: 'Drags with the mouse from one position to another.',
    input: z.object({ x: X, y: Y, to_x: X, to_y: Y, button: BUTTON }),
    async run(desktop, { x, y, to_x, to_y, button }, signal) {
      await desktop.drag({ x, y }, { x: to_x, y: to_y }, button, signal);
      return { text: `Dragged from ${x},${y} to ${to_x},${to_y}.` };
    },
  }),
  define({
    name: 'desktop_scroll',
    description:
      'Turns the mouse wheel at a position: dy steps down, dx steps to the right; negative for up and left.',
    input: z.object({
      x: X,
      y: Y,
      dx: z.number().int().min(-MAX_SCROLL_STEPS).max(MAX_SCROLL_STEPS).default(0),
      dy: z.number().int().min(-MAX_SCROLL_STEPS).max(MAX_SCROLL_STEPS).default(0),
    }),
    async run(desktop, { x, y, dx, dy }, signal) {
      await desktop.scroll({ x, y }, { dx, dy }, signal);
      return { text: 'Scrolled.' };
    },
  }),
  define({
    name: 'desktop_type',
    description:
      'Types text where the keyboard has its focus: click into a field first. A line break presses Return.',
    input: z.object({ text: z.string().min(1).max(MAX_TEXT_CHARS) }),
    async run(desktop, { text }, signal) {
      await desktop.type(text, signal);
      return { text: `Typed ${text.length} characters.` };
    },
  }),
  define({
    name: 'desktop_key',
    description:
      'Presses key combinations, such as Return, ctrl+a or "ctrl+l Delete". The browser offers them to its page first: if one moves the focus, look at what is focused before you type.',
    input: z.object({ keys: z.string().min(1).max(200) }),
    async run(desktop, { keys }, signal) {
      await desktop.press(keys, signal);
      return { text: `Pressed ${keys}.` };
    },
  }),
  define({
    name: 'desktop_wait',
    description: 'Waits, for example until a page has loaded.',
    input: z.object({ seconds: z.number().min(0).max(MAX_WAIT_SECONDS) }),
    async run(desktop, { seconds }, signal) {
      await desktop.wait(seconds, signal);
      return { text: `Waited for ${seconds} s.` };
    },
  }),
];

/**
 * Runs a tool. Its result begins with a note about each program of the desktop that has crashed since the last one.
 * Rejects like the operations of {@link Desktop}.
 */
export async function runDesktopTool(
  tool: DesktopTool,
  desktop: Desktop,
  input: unknown,
  signal: AbortSignal,
): Promise<DesktopResult> {
  const result = await tool.run(desktop, tool.input.parse(input), signal);
  const notices = await desktop.notices();
  return { ...result, text: [...notices, result.text].join('\n') };
}

/** A tool with its input type checked here and hidden from callers, who validate with its schema. */
function define<S extends z.ZodType>(tool: DesktopTool<S>): DesktopTool {
  return {
    ...tool,
    run: (desktop, input, signal) => tool.run(desktop, tool.input.parse(input), signal),
  };
}

function listElements({ elements, truncated }: UiElements): string {
  const lines = elements.map(describeElement);
  if (lines.length === 0) lines.push('[There are no elements.]');
  if (truncated) lines.push('[There are more.]');
  return lines.join('\n');
}

/** An element in one line, such as `e7 button "Send" at 120,80 (60×30)`. */
function describeElement({ id, role, name, box, states = [], value }: UiElement): string {
  const at = `${box.x + Math.floor(box.width / 2)},${box.y + Math.floor(box.height / 2)}`;
  const parts = [`${id} ${role} ${JSON.stringify(name)} at ${at} (${box.width}×${box.height})`];
  if (value !== undefined) parts.push(`value ${JSON.stringify(value)}`);
  return [...parts, ...states].join(', ');
}
