import { existsSync } from 'node:fs';
import { OperationQueue } from '../../../operation-queue.ts';
import type { AgentTool, ToolContext } from '../tool.ts';
import { clickTool, navigateTool, typeTool } from './actions.ts';
import { AgentBrowser } from './agent-browser.ts';
import { downloadTool } from './download.ts';
import { screenshotTool, snapshotTool, textTool } from './reading.ts';

/** Where templates with a browser have the program that starts it. */
const PROGRAM = '/usr/lib/svc/browser';
const ADDRESS = 'http://127.0.0.1:9222';
const MAX_PENDING = 32;

/** The address of this sandbox's browser; undefined if it has none. */
export function browserAddress(): string | undefined {
  return existsSync(PROGRAM) ? ADDRESS : undefined;
}

/** The tools of a browser, which share a page. The browser's connection ends with `context.signal`. */
export function browserTools(context: ToolContext, maxChars: number, address: string): AgentTool[] {
  const browser = new AgentBrowser(address);
  context.signal.addEventListener('abort', () => browser.close(), { once: true });
  const queue = new OperationQueue(MAX_PENDING, () => new Error('Too many calls at once.'));
  const parts = { browser, queue, context, maxChars };
  return [
    navigateTool(parts),
    snapshotTool(parts),
    textTool(parts),
    clickTool(parts),
    typeTool(parts),
    screenshotTool(parts),
    downloadTool(parts),
  ];
}
