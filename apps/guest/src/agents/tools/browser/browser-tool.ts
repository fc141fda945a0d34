import { z } from 'zod';
import type { OperationQueue } from '../../../operation-queue.ts';
import { type AgentTool, defineTool, failed, type ToolContext, type ToolOutcome } from '../tool.ts';
import { truncateMiddle } from '../truncate.ts';
import type { AgentBrowser } from './agent-browser.ts';
import { BrowserGone } from './cdp-connection.ts';
import { AccessibilityNodes, describeTree, elementOf } from './page-snapshot.ts';

/** What the tools of a browser share. */
export interface BrowserParts {
  readonly browser: AgentBrowser;
  /** The sub-agents of an agent use the same page. */
  readonly queue: OperationQueue;
  readonly context: ToolContext;
  /** Characters of a result. */
  readonly maxChars: number;
}

type ReadableBrowser = Pick<AgentBrowser, 'document' | 'send'>;

/** For pages that lead to the next one at once. */
const ATTEMPTS = 5;

/** A reference to an element, in the input of a tool. */
export const Reference = z
  .string()
  .max(40)
  .describe('The `ref` of the element in the latest snapshot.');

const Place = z.object({
  result: z.object({ value: z.object({ url: z.string(), title: z.string() }) }),
});

/** Defines a tool of the browser, whose results begin with what happened to the browser meanwhile. */
export function defineBrowserTool<S extends z.ZodType>(
  { browser, queue, maxChars }: BrowserParts,
  spec: {
    readonly name: string;
    readonly description: string;
    readonly input: S;
    run(input: z.infer<S>, signal: AbortSignal): Promise<ToolOutcome>;
  },
): AgentTool {
  return defineTool({
    ...spec,
    run: (input: z.infer<S>, signal) =>
      queue.run(signal, async () => {
        const { text, isError } = await runSafely(() => spec.run(input, signal), signal);
        const all = [...new Set([...browser.takeNotices(), text])].join('\n');
        return { text: truncateMiddle(all, maxChars), isError };
      }),
  });
}

async function runSafely(
  run: () => Promise<ToolOutcome>,
  signal: AbortSignal,
): Promise<ToolOutcome> {
  try {
    return await run();
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof BrowserGone) return failed('The action was not completed.');
    throw error;
  }
}

/** The page's address, title and accessibility tree, all of one document. */
export async function describePage(browser: ReadableBrowser, signal: AbortSignal): Promise<string> {
  for (let attempt = 1; ; attempt += 1) {
    const { document } = browser;
    const { nodes } = await browser.send(
      'Accessibility.getFullAXTree',
      {},
      AccessibilityNodes,
      signal,
    );
    const { url, title } = await placeOf(browser, signal);
    // The next document may have come in between. Its references to elements would name those of the last one.
    if (browser.document !== document && attempt < ATTEMPTS) continue;
    return `Page: ${title}\nURL: ${url}\n\n${describeTree(nodes, document)}`;
  }
}

/** The page's address and title. */
export async function placeOf(
  browser: ReadableBrowser,
  signal: AbortSignal,
): Promise<{ readonly url: string; readonly title: string }> {
  const expression = '({ url: location.href, title: document.title })';
  const { result } = await browser.send(
    'Runtime.evaluate',
    { expression, returnByValue: true },
    Place,
    signal,
  );
  return result.value;
}

/** The number of a referenced element in the browser. @throws an Error when the reference is not of this page */
export function findElement(browser: AgentBrowser, reference: string): number {
  const element = elementOf(reference, browser.document);
  if (element !== undefined) return element;
  throw new Error(`There is no element ${reference} on this page: take a new snapshot.`);
}
