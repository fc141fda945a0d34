import { z } from 'zod';
import { type AgentTool, done, failed, type ToolOutcome } from '../tool.ts';
import type { AgentBrowser } from './agent-browser.ts';
import {
  type BrowserParts,
  defineBrowserTool,
  describePage,
  findElement,
  Reference,
} from './browser-tool.ts';

const MAX_TEXT = 65_536;
const STILL_LOADING = 'The page is still loading.';

const Navigated = z.object({
  errorText: z.string().optional(),
  isDownload: z.boolean().optional(),
});
const Quads = z.object({ quads: z.array(z.array(z.number()).length(8)) });
const Resolved = z.object({ object: z.object({ objectId: z.string() }) });
const Called = z.object({ result: z.object({ value: z.unknown() }) });

/** Opens a URL. */
export function navigateTool(parts: BrowserParts): AgentTool {
  const { browser } = parts;
  return defineBrowserTool(parts, {
    name: 'browser_navigate',
    description: 'Opens a URL in the browser. Returns the page as an accessibility snapshot.',
    input: z.object({ url: z.url({ protocol: /^(https?|file|about|data)$/ }).max(8_192) }),
    async run({ url }, signal) {
      await browser.openPage(signal);
      let outcome: z.infer<typeof Navigated> = {};
      const loaded = await browser.perform(
        async () => {
          outcome = await browser.send('Page.navigate', { url }, Navigated, signal);
        },
        signal,
        { leads: url !== 'about:blank' },
      );
      if (outcome.isDownload) return failed('This is a file: use browser_download.');
      if (outcome.errorText !== undefined) return failed(`${url}: ${outcome.errorText}`);
      return await seen(browser, loaded, signal);
    },
  });
}

/** Clicks an element. */
export function clickTool(parts: BrowserParts): AgentTool {
  const { browser } = parts;
  return defineBrowserTool(parts, {
    name: 'browser_click',
    description:
      'Clicks an element of the page. Returns the resulting page as an accessibility snapshot.',
    input: z.object({
      ref: Reference,
      double: z.boolean().optional().describe('Whether to click twice.'),
    }),
    async run({ ref, double = false }, signal) {
      const loaded = await browser.perform(
        () => clickElement(browser, findElement(browser, ref), signal, double ? 2 : 1),
        signal,
      );
      return await seen(browser, loaded, signal);
    },
  });
}

/** Types into an element, or chooses from a list. */
export function typeTool(parts: BrowserParts): AgentTool {
  const { browser } = parts;
  return defineBrowserTool(parts, {
    name: 'browser_type',
    description:
      'Replaces the text of a field, or chooses the option with this text from a list. Returns the resulting page as an accessibility snapshot.',
    input: z.object({
      ref: Reference,
      text: z.string().max(MAX_TEXT),
      submit: z.boolean().optional().describe('Whether to press Enter afterwards.'),
    }),
    async run({ ref, text, submit = false }, signal) {
      const element = findElement(browser, ref);
      const loaded = await browser.perform(async () => {
        await fill(browser, element, text, signal);
        if (submit) await pressEnter(browser, signal);
      }, signal);
      return await seen(browser, loaded, signal);
    },
  });
}

/** Clicks the middle of an element, which is scrolled into view. */
export async function clickElement(
  browser: AgentBrowser,
  element: number,
  signal: AbortSignal,
  count = 1,
): Promise<void> {
  await browser.tell('DOM.scrollIntoViewIfNeeded', { backendNodeId: element }, signal);
  const target = { backendNodeId: element };
  const { quads } = await browser.send('DOM.getContentQuads', target, Quads, signal);
  const [quad] = quads;
  if (quad === undefined) throw new Error('The element is not visible.');
  const middle = (offset: number) =>
    [0, 2, 4, 6].reduce((sum, corner) => sum + (quad[corner + offset] ?? 0), 0) / 4;
  const at = { x: middle(0), y: middle(1) };
  const mouse = (type: string, clickCount = 0) =>
    browser.tell(
      'Input.dispatchMouseEvent',
      { type, ...at, ...(clickCount === 0 ? {} : { button: 'left', clickCount }) },
      signal,
    );
  await mouse('mouseMoved');
  for (let click = 1; click <= count; click += 1) {
    await mouse('mousePressed', click);
    await mouse('mouseReleased', click);
  }
}

async function fill(
  browser: AgentBrowser,
  element: number,
  text: string,
  signal: AbortSignal,
): Promise<void> {
  const target = { backendNodeId: element };
  await browser.tell('DOM.scrollIntoViewIfNeeded', target, signal);
  const { object } = await browser.send('DOM.resolveNode', target, Resolved, signal);
  const call = {
    objectId: object.objectId,
    functionDeclaration: PREPARE,
    arguments: [{ value: text }],
    returnByValue: true,
  };
  const { result } = await browser.send('Runtime.callFunctionOn', call, Called, signal);
  if (result.value === 'chosen') return;
  if (result.value !== 'ready') throw new Error(String(result.value));
  if (text === '') {
    await browser.tell(
      'Input.dispatchKeyEvent',
      { type: 'keyDown', key: 'Delete', windowsVirtualKeyCode: 46 },
      signal,
    );
    await browser.tell(
      'Input.dispatchKeyEvent',
      { type: 'keyUp', key: 'Delete', windowsVirtualKeyCode: 46 },
      signal,
    );
  } else {
    await browser.tell('Input.insertText', { text }, signal);
  }
}

/** Runs in the page, on the element: selects its text, so that typing replaces it. */
const PREPARE = `function (text) {
  const element = this instanceof HTMLLabelElement && this.control ? this.control : this;
  if (element instanceof HTMLSelectElement) {
    const option = [...element.options].find((one) => one.label.trim() === text || one.value === text);
    if (!option) return 'The list has no option ' + JSON.stringify(text) + '.';
    element.value = option.value;
    for (const type of ['input', 'change']) element.dispatchEvent(new Event(type, { bubbles: true }));
    return 'chosen';
  }
  if (!(element instanceof HTMLElement)) return 'The element is no field.';
  element.focus();
  if (element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement) {
    if (element.disabled || element.readOnly) return 'The field cannot be changed.';
    element.select();
    return 'ready';
  }
  if (!element.isContentEditable) return 'The element is no field.';
  getSelection().selectAllChildren(element);
  return 'ready';
}`;

async function pressEnter(browser: AgentBrowser, signal: AbortSignal): Promise<void> {
  const key = { key: 'Enter', code: 'Enter', windowsVirtualKeyCode: 13 };
  await browser.tell('Input.dispatchKeyEvent', { type: 'keyDown', text: '\r', ...key }, signal);
  await browser.tell('Input.dispatchKeyEvent', { type: 'keyUp', ...key }, signal);
}

async function seen(
  browser: AgentBrowser,
  loaded: boolean,
  signal: AbortSignal,
): Promise<ToolOutcome> {
  const page = await describePage(browser, signal);
  return done(loaded ? page : `${STILL_LOADING}\n${page}`);
}
