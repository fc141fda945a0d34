import { agentTools, DESKTOP_TOOLS, type LlmDialect } from '@svc/contract';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { openSession } from '../../../test/deictic/open-session.ts';
import { RunningDesktop } from '../../../test/desktop/running-desktop.ts';
import { DESKTOP_TOOLKIT, Desktop } from '../../desktop/index.ts';

const PNG = /iVBORw0KGgo[A-Za-z0-9+/=]+|\/9j\/[A-Za-z0-9+/=]+/g;

const SCREENSHOT = { tool_calls: [{ name: 'desktop_screenshot', arguments: {} }] };

describe('with a desktop', { timeout: 120_000 }, () => {
  let running: RunningDesktop;
  let desktop: Desktop;

  beforeAll(async () => {
    running = await RunningDesktop.start();
    desktop = new Desktop(running.settings);
    const signal = AbortSignal.timeout(60_000);
    await vi.waitFor(async () => {
      const { elements } = await desktop.elements(10, signal);
      expect(elements.map(({ name }) => name)).toContain('Full name');
    }, 60_000);
  }, 120_000);

  afterAll(async () => {
    await running.close();
  });

  test.each<[LlmDialect, string, number]>([
    ['anthropic', 'claude-sonnet-4-5', 1],
    ['openai', 'gpt-4o', 1],
    ['google', 'gemini-2.5-pro', 1],
    ['deepseek', 'deepseek-chat', 0],
  ])('a model that speaks %s sees a screenshot as an image', async (dialect, model, images) => {
    await using session = await openSession(
      [
        { when: { user: 'look' }, reply: SCREENSHOT },
        { when: { tool: 'the desktop' }, reply: { text: 'A form.' } },
        { when: { user: 'the tool has shown' }, reply: { text: 'A form.' } },
        { reply: { text: 'A form.' } },
      ],
      { setup: { dialect, model }, options: { machine: { desktop } } },
    );
    expect(await session.run('look')).toEqual({ status: 'completed', result: 'A form.' });
    expect(session.ofType('tool_result')).toMatchObject([{ is_error: false }]);
    const sent = JSON.stringify(session.server.requests.at(-1)?.body);
    expect(sent.match(PNG) ?? []).toHaveLength(images);
    expect(sent).toContain('This is the desktop now.');
    expect(sent.includes('The picture was left out.')).toBe(images === 0);
  });

  test('keeps the newest pictures only, and none in its record', async () => {
    // The scripted model would count the bytes of a picture as text.
    const usage = { input_tokens: 10, output_tokens: 10 };
    await using session = await openSession(
      [
        { when: { tool: 'the desktop' }, reply: { text: 'Seen.', usage } },
        { when: { user: 'look' }, reply: { ...SCREENSHOT, usage } },
      ],
      { options: { machine: { desktop } } },
    );
    for (const prompt of ['look 1', 'look 2', 'look 3', 'look 4']) await session.run(prompt);
    const sent = JSON.stringify(session.server.requests.at(-1)?.body);
    expect(sent.match(PNG)).toHaveLength(3);
    expect(sent.match(/The picture was left out/g)).toHaveLength(1);
    expect(session.agent.conversation()).not.toMatch(PNG);
    session.resume();
    expect((await session.run('look 5')).status).toBe('completed');
  });

  test('fills a form by elements and by pixels, and hears of a crashed browser', async () => {
    running.events.length = 0;
    await running.countStarts('browser', 1);
    const { elements } = await desktop.elements(50, AbortSignal.timeout(60_000));
    const box = elements.find(({ name }) => name === 'Send')?.box;
    const send = { x: (box?.x ?? 0) + 20, y: (box?.y ?? 0) + 10 };
    const call = (name: string, input: object) => ({
      tool_calls: [{ name: `desktop_${name}`, arguments: input }],
    });
    await using session = await openSession(
      [
        { when: { user: 'fill' }, reply: call('elements', {}) },
        {
          when: { tool: '(e\\d+) textbox "Full name"' },
          times: 1,
          reply: call('click_element', { id: '$1' }),
        },
        { when: { tool: '^Clicked e' }, reply: call('type', { text: 'Ada' }) },
        { when: { tool: 'Typed 3' }, reply: call('click', send) },
        { when: { tool: 'Clicked at' }, reply: call('click', { x: 5_000, y: 1 }) },
        { when: { tool: 'not on the display' }, reply: { text: 'done' } },
      ],
      { options: { machine: { desktop } } },
    );
    expect(await session.run('fill')).toMatchObject({ result: 'done' });
    await expect
      .poll(() => running.events, { timeout: 60_000 })
      .toContainEqual({ event: 'sent', text: 'Ada' });
    await running.countStarts('browser', 2);
    await session.run('fill');
    const notes = session.ofType('tool_result').filter(({ content }) => /crashed/.test(content));
    expect(notes).toHaveLength(1);
  });
});

test('the tools are those that an app can name in the template with a desktop', () => {
  expect(DESKTOP_TOOLKIT.map(({ name }) => name)).toEqual(DESKTOP_TOOLS);
  expect(agentTools('deictic', 'cua')).toEqual(expect.arrayContaining([...DESKTOP_TOOLS]));
  for (const template of ['standard', 'browser']) {
    expect(agentTools('deictic', template).join()).not.toContain('desktop_');
  }
});

test('without a desktop there are no tools for it', async () => {
  await using session = await openSession([{ when: { user: 'go' }, reply: { text: 'ok' } }]);
  await session.run('go');
  expect(JSON.stringify(session.server.requests[0]?.body)).not.toContain('desktop_');
});
