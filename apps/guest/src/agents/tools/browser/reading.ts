import { dirname } from 'node:path';
import { z } from 'zod';
import { capture } from '../capture.ts';
import { PathInput, resolvePath } from '../paths.ts';
import { type AgentTool, done } from '../tool.ts';
import { type BrowserParts, defineBrowserTool, describePage, placeOf } from './browser-tool.ts';

const Text = z.object({ result: z.object({ value: z.string() }) });
const Picture = z.object({ data: z.string() });

/** Shows the page as an accessibility tree. */
export function snapshotTool(parts: BrowserParts): AgentTool {
  return defineBrowserTool(parts, {
    name: 'browser_snapshot',
    description:
      'Returns the page as an accessibility tree. Each element has a `ref`, by which other tools name it until the page changes.',
    input: z.object({}),
    run: async (_, signal) => done(await describePage(parts.browser, signal)),
  });
}

/** Shows the text of the page. */
export function textTool(parts: BrowserParts): AgentTool {
  const { browser } = parts;
  return defineBrowserTool(parts, {
    name: 'browser_text',
    description: 'Returns the visible text of the page. The middle of a long text is cut.',
    input: z.object({}),
    async run(_, signal) {
      const expression = "document.body?.innerText ?? ''";
      const { result } = await browser.send('Runtime.evaluate', { expression }, Text, signal);
      const { url, title } = await placeOf(browser, signal);
      return done(`Page: ${title}\nURL: ${url}\n\n${result.value}`);
    },
  });
}

/** Saves a picture of the page. */
export function screenshotTool(parts: BrowserParts): AgentTool {
  const { browser, context } = parts;
  return defineBrowserTool(parts, {
    name: 'browser_take_screenshot',
    description: 'Saves a picture of the page to a PNG file.',
    input: z.object({
      path: PathInput,
      full_page: z.boolean().optional().describe('Whether to include what is out of view.'),
    }),
    async run({ path, full_page: captureBeyondViewport = false }, signal) {
      const options = { format: 'png', captureBeyondViewport };
      const { data } = await browser.send('Page.captureScreenshot', options, Picture, signal);
      const file = resolvePath(path, context.workingDirectory);
      const script = 'mkdir -p -- "$1" && base64 -d > "$2"';
      const written = await capture(context, ['sh', '-c', script, 'sh', dirname(file), file], {
        signal,
        maxChars: 1_000,
        input: data,
      });
      if (written.exitCode !== 0) throw new Error(written.stderr || `${file} cannot be written`);
      return done(`Saved the picture to ${file}.`);
    },
  });
}
