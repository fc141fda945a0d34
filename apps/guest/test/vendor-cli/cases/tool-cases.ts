import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { AgentFrame } from '@svc/contract';
import { afterAll, beforeAll, describe, expect, vi } from 'vitest';
import { Desktop } from '../../../src/desktop/index.ts';
import { RunningBrowser } from '../../browser/running-browser.ts';
import { RunningDesktop } from '../../desktop/running-desktop.ts';
import type { CliTest } from '../cli-test.ts';
import type { TestCli } from '../test-cli.ts';

const PICTURE = /iVBORw0KGgo[A-Za-z0-9+/=]+|\/9j\/[A-Za-z0-9+/=]+/;

/** The tools of templates with a browser and with a desktop. */
export function toolCases(test: CliTest): void {
  describe('with a browser', () => {
    let browser: RunningBrowser;
    let site: Server;
    let origin: string;
    /** Settles when the endless file is no longer sent. */
    let unsent: Promise<unknown> | undefined;

    beforeAll(async () => {
      site = createServer((request, response) => {
        if (request.url !== '/endless') {
          response.setHeader('content-type', 'text/html');
          response.end('<title>Order</title><button>Send</button>');
          return;
        }
        response.setHeader('content-disposition', 'attachment; filename="endless"');
        response.write(Buffer.alloc(100_000));
        unsent = once(response, 'close');
      });
      site.listen(0, '127.0.0.1');
      await once(site, 'listening');
      origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
      browser = await RunningBrowser.start();
    });
    afterAll(async () => {
      await browser?.[Symbol.asyncDispose]();
      site.closeAllConnections();
      site.close();
    });

    const navigate = (cli: TestCli) => [
      { when: { tool: 'button "(Send)"' }, reply: { text: 'There is $1.' } },
      { when: { tool: '([^]*)' }, reply: { text: 'Unexpected: $1' } },
      { reply: { tool_calls: [cli.driver.toolCall('browser_navigate', { url: `${origin}/` })] } },
    ];

    test('opens a page, and hears that the browser crashed', async ({ cli }) => {
      await cli.reopen({}, { browser: browser.address });
      cli.script(...navigate(cli));
      expect(await cli.run('look')).toEqual({ status: 'completed', result: 'There is Send.' });
      const [call] = framesOf(cli, 'tool_call');
      expect(call).toMatchObject({
        name: 'browser_navigate',
        arguments: { url: `${origin}/` },
      });
      expect(framesOf(cli, 'tool_result')).toMatchObject([{ id: call?.id, is_error: false }]);
      expect(cli.world.texts('tool_result')[0]).toContain('Page: Order');

      // The page outlives the process of the CLI.
      cli.world.env = { ...cli.world.env, BUNDLE_TOKEN: 'second' };
      const readPage = [
        { when: { tool: '' }, reply: { text: 'done' } },
        { reply: { tool_calls: [cli.driver.toolCall('browser_text', {})] } },
      ];
      cli.script(...readPage);
      await cli.run('read');
      expect(cli.world.texts('tool_result')[1]).toContain(`URL: ${origin}/`);

      await browser.crash();
      cli.script(...readPage);
      await cli.run('read again');
      expect(cli.world.texts('tool_result')[2]).toContain('crashed and was started again');
      expect(framesOf(cli, 'tool_result')[2]).toMatchObject({ is_error: true });
      await cli.reopen();
    });

    test('can be interrupted during a tool call, which it ends', async ({ cli }) => {
      await cli.reopen({}, { browser: browser.address });
      unsent = undefined;
      const download = { url: `${origin}/endless`, directory: join(cli.world.home, 'work') };
      cli.script({
        reply: { tool_calls: [cli.driver.toolCall('browser_download', download)] },
      });
      const outcome = await cli.interrupt('download', () => unsent !== undefined);
      expect(outcome).toMatchObject({ status: 'interrupted' });
      expect(framesOf(cli, 'tool_result')).toMatchObject([{ is_error: true }]);
      await unsent;
      cli.script(...navigate(cli));
      expect(await cli.run('look')).toMatchObject({ result: 'There is Send.' });
      await cli.reopen();
    });
  });

  describe('with a desktop', () => {
    let running: RunningDesktop;
    let desktop: Desktop;
    beforeAll(async () => {
      running = await RunningDesktop.start();
      desktop = new Desktop(running.settings);
      await vi.waitFor(() => desktop.elements(1, AbortSignal.timeout(60_000)), {
        timeout: 120_000,
      });
    });
    afterAll(() => running?.close());

    test('sees a screenshot as a picture', async ({ cli }) => {
      await cli.reopen({}, { desktop });
      cli.script(
        { when: { tool: 'the desktop' }, reply: { text: 'A form.' } },
        { when: { tool: '([^]*)' }, reply: { text: 'Unexpected: $1' } },
        { reply: { tool_calls: [cli.driver.toolCall('desktop_screenshot', {})] } },
      );
      expect(await cli.run('look')).toEqual({ status: 'completed', result: 'A form.' });
      const [picture] = PICTURE.exec(cli.lastRequest()) ?? [];
      expect(picture?.length).toBeGreaterThan(10_000);
      const [shown] = cli.world.texts('tool_result');
      expect(shown).toContain('This is the desktop now.');
      expect(shown).toContain('[image]');
      expect(shown).not.toMatch(PICTURE);
      await cli.reopen();
    });
  });
}

function framesOf<T extends AgentFrame['type']>(cli: TestCli, type: T) {
  return cli.world.frames.filter(
    (frame): frame is Extract<AgentFrame, { type: T }> => frame.type === type,
  );
}
