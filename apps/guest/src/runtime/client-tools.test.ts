import type { AgentFrame } from '@svc/contract';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { RunningDesktop } from '../../test/desktop/running-desktop.ts';
import { Desktop, type Screenshot, type UiElement } from '../desktop/index.ts';
import { ClientTools } from './client-tools.ts';

describe('a client of a desktop', () => {
  let running: RunningDesktop;
  let desktop: Desktop;
  let tools: ClientTools;
  let send: UiElement;
  let frames: { frame: AgentFrame; image: Screenshot | undefined }[];
  const refused: (string | undefined)[] = [];
  const faults: unknown[] = [];

  beforeAll(async () => {
    running = await RunningDesktop.start();
    desktop = new Desktop(running.settings);
    send = await vi.waitFor(async () => {
      const { elements } = await desktop.elements(500, AbortSignal.timeout(60_000));
      return elements.find(({ name }) => name === 'Send') ?? expect.unreachable();
    }, 60_000);
  });
  afterAll(() => running.close());

  beforeEach(() => {
    frames = [];
    running.events.length = 0;
    tools = new ClientTools({
      desktop,
      emit: (frame, image) => frames.push({ frame, image }),
      drained: async () => undefined,
      refuse: (id) => refused.push(id),
      onFault: (error) => faults.push(error),
      signal: AbortSignal.timeout(100_000),
    });
  });

  const call = (name: string, input: Record<string, unknown>, id = 'c') =>
    tools.run({ type: 'tool_call', name, arguments: input, id });
  const happened = (event: object) =>
    expect
      .poll(() => running.events, { timeout: 60_000 })
      .toContainEqual(expect.objectContaining(event));

  test('uses the mouse and the keyboard', async () => {
    const at = { x: send.box.x + 5, y: send.box.y + 100 };
    const to = { x: at.x + 40, y: at.y + 30 };
    await call('mouse', { action: 'click', ...at });
    await happened({ event: 'down', button: 1, ...at });
    await call('mouse', { action: 'double_click', ...at, button: 'right' });
    await happened({ event: 'double', button: 3, ...at });
    await call('mouse', { action: 'scroll', ...at, dy: -1 });
    await happened({ event: 'scroll', direction: 'up', ...at });
    await call('mouse', { action: 'drag', ...at, to_x: to.x, to_y: to.y });
    await happened({ event: 'up', button: 1, ...to });
    await call('mouse', { action: 'down', ...at, button: 'middle' });
    await call('mouse', { action: 'move', ...to });
    await call('mouse', { action: 'up', ...to, button: 'middle' });
    await happened({ event: 'up', button: 2, ...to });
    await call('keyboard', { action: 'press', keys: 'ctrl+a' });
    await call('keyboard', { action: 'type', text: 'Ada' });
    await happened({ event: 'text', text: 'Ada' });
    const result = { type: 'tool_result', id: 'c', content: 'Done.', is_error: false };
    expect(frames).toHaveLength(9);
    for (const { frame, image } of frames) {
      expect(frame).toEqual(result);
      expect(image).toBeUndefined();
    }
  });

  test('gets a picture with the result', async () => {
    await call('screenshot', {});
    expect(frames).toMatchObject([
      { frame: { type: 'tool_result', is_error: false }, image: { mediaType: 'image/png' } },
    ]);
  });

  test.each([
    ['a position outside the display', 'mouse', { action: 'click', x: 1280, y: 0 }, '1280,0'],
    ['an action that does not exist', 'mouse', { action: 'wave', x: 1, y: 1 }, 'action'],
    ['a drag without an end', 'mouse', { action: 'drag', x: 1, y: 1 }, 'to_x'],
    ['a position in words', 'mouse', { action: 'move', x: 'left', y: 1 }, 'x'],
    ['a key without a name', 'keyboard', { action: 'press', keys: '' }, 'No key'],
    ['a press without keys', 'keyboard', { action: 'press', text: 'a' }, 'keys'],
    ['a screenshot of something', 'screenshot', { window: 1 }, 'window'],
  ])('is told about %s', async (_what, name, input, words) => {
    await call(name, input);
    expect(frames).toMatchObject([{ frame: { type: 'tool_result', id: 'c', is_error: true } }]);
    expect(JSON.stringify(frames)).toContain(words);
    expect(faults).toEqual([]);
  });

  test('has no other tools', async () => {
    await call('shell', { command: 'id' }, 'other');
    expect(frames).toEqual([]);
    expect(refused).toEqual(['other']);
  });
});
