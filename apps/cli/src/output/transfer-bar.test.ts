import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { formatBytes } from './format.ts';
import { progressText, TransferBar } from './transfer-bar.ts';

test('formats sizes', () => {
  expect([0, 1023, 1024, 1536, 20 * 1024 ** 2, 2 ** 60].map(formatBytes)).toEqual([
    ...['0 B', '1023 B', '1.0 KiB', '1.5 KiB', '20.0 MiB', '1048576.0 TiB'],
  ]);
});

test('formats progress', () => {
  expect(progressText(512, 1024)).toBe('████████████░░░░░░░░░░░░  50 %  512 B of 1.0 KiB');
  expect(progressText(1024, 1024)).toBe('████████████████████████ 100 %  1.0 KiB of 1.0 KiB');
  expect(progressText(512, undefined)).toBe('512 B');
});

test('passes bytes on, draws on a terminal and cleans up', async () => {
  const written: string[] = [];
  const terminal = { isTTY: true, columns: 80, write: (text: string) => written.push(text) };
  const bar = new TransferBar('a', 4, terminal as unknown as NodeJS.WriteStream);
  const passed = await buffer(Readable.from([Buffer.from('abcd')]).pipe(bar.count()));
  expect([passed.toString(), bar.bytes]).toEqual(['abcd', 4]);
  expect(written.join('')).toContain('100 %');
  expect(written.at(-1)).toBe('\r\u001b[2K');
});
