import { join } from 'node:path';
import { z } from 'zod';
import { capture } from '../capture.ts';
import { PathInput, resolvePath } from '../paths.ts';
import { type AgentTool, done, failed } from '../tool.ts';
import { clickElement } from './actions.ts';
import type { AgentBrowser } from './agent-browser.ts';
import { type BrowserParts, defineBrowserTool, findElement, Reference } from './browser-tool.ts';
import { BrowserGone } from './cdp-connection.ts';

const DOWNLOAD_MS = 300_000;
const CANCEL_MS = 10_000;
const MAX_BYTES = 512 * 1024 * 1024;

const Began = z.object({ guid: z.string(), suggestedFilename: z.string() });
const Progress = z.object({
  guid: z.string(),
  state: z.enum(['inProgress', 'completed', 'canceled']),
  receivedBytes: z.number(),
  filePath: z.string().optional(),
});

/** Downloads a file with the browser's cookies. */
export function downloadTool(parts: BrowserParts): AgentTool {
  const { browser, context } = parts;
  return defineBrowserTool(parts, {
    name: 'browser_download',
    description:
      'Downloads a file: what a click on an element of the page downloads, or a URL. Returns where it is.',
    input: z.object({
      ref: Reference.optional(),
      url: z
        .url({ protocol: /^https?$/ })
        .max(8_192)
        .optional(),
      directory: PathInput.optional().describe('Default: the working directory.'),
    }),
    async run({ ref, url, directory = '.' }, signal) {
      if ((ref === undefined) === (url === undefined)) return failed('Give either `ref` or `url`.');
      const folder = resolvePath(directory, context.workingDirectory);
      const made = await capture(context, ['mkdir', '-p', '--', folder], {
        signal,
        maxChars: 1_000,
      });
      if (made.exitCode !== 0) return failed(made.stderr);
      await browser.openPage(signal);
      const deadline = AbortSignal.any([signal, AbortSignal.timeout(DOWNLOAD_MS)]);
      const start = () =>
        ref === undefined
          ? clickLink(browser, url ?? '', signal)
          : clickElement(browser, findElement(browser, ref), signal);
      return done(await download(browser, folder, start, deadline));
    },
  });
}

/** Starts a download and waits for its end. Returns a sentence about the file. */
async function download(
  browser: AgentBrowser,
  folder: string,
  start: () => Promise<void>,
  signal: AbortSignal,
): Promise<string> {
  const behaviour = { behavior: 'allow', downloadPath: folder, eventsEnabled: true };
  await browser.tellBrowser('Browser.setDownloadBehavior', behaviour, signal);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let begun: z.infer<typeof Began> | undefined;
  const forget = browser.listen(({ method, params }) => {
    if (method === 'Browser.downloadWillBegin') begun ??= Began.parse(params);
    if (method !== 'Browser.downloadProgress' || params.guid !== begun?.guid) return;
    const { state, receivedBytes, filePath, guid } = Progress.parse(params);
    if (state === 'canceled') reject(new Error('The download failed.'));
    if (state === 'completed') {
      const file = filePath ?? join(folder, begun?.suggestedFilename ?? '');
      resolve(`Saved ${receivedBytes} bytes to ${file}.`);
    } else if (receivedBytes > MAX_BYTES) {
      browser.tellBrowser('Browser.cancelDownload', { guid }, signal).catch(reject);
    }
  });
  const abort = () => reject(new Error('The download did not end in time.'));
  signal.addEventListener('abort', abort, { once: true });
  const ended = browser.onceGone(() => reject(new BrowserGone('the browser ended')));
  try {
    await Promise.all([start(), promise]);
    return await promise;
  } catch (error) {
    await cancel(browser, () => begun?.guid);
    throw error;
  } finally {
    forget();
    ended();
    signal.removeEventListener('abort', abort);
  }
}

/**
 * Ends a download that nobody waits for, also one that has not begun yet: the browser refuses it until the next use of the tool.
 * Without effect if it has ended, or the browser.
 * @param begun the download that the browser has reported
 */
async function cancel(browser: AgentBrowser, begun: () => string | undefined): Promise<void> {
  const deadline = AbortSignal.timeout(CANCEL_MS);
  try {
    await browser.tellBrowser('Browser.setDownloadBehavior', { behavior: 'deny' }, deadline);
    // The browser reports in order: what began before its answer is known now.
    const guid = begun();
    if (guid !== undefined) await browser.tellBrowser('Browser.cancelDownload', { guid }, deadline);
  } catch {
    // It has no such download any more, or is gone.
  }
}

/** Has the page click a link to a URL, which the browser is asked to download rather than to show. */
async function clickLink(browser: AgentBrowser, url: string, signal: AbortSignal): Promise<void> {
  const expression = `{
    const link = document.createElement('a');
    link.href = ${JSON.stringify(url)};
    link.download = '';
    link.click();
  }`;
  await browser.tell('Runtime.evaluate', { expression, userGesture: true }, signal);
}
