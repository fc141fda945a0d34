import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { AGENT_TOOLS } from '@svc/contract';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ToolOutcome } from '../../tools/tool.ts';
import { htmlText } from './html-text.ts';
import { createTools } from './index.ts';

const MAX_CHARS = 4_000;
let directory: string;
let env: Record<string, string>;
let runtime: AbortController;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'deictic-tools-'));
  env = { PATH: process.env.PATH ?? '', HOME: directory };
  runtime = new AbortController();
});

afterEach(async () => {
  runtime.abort();
  await rm(directory, { recursive: true, force: true });
});

test('an app can name exactly the tools that there are', () => {
  const context = {
    home: directory,
    workingDirectory: directory,
    env: () => env,
    signal: runtime.signal,
  };
  const names = createTools(context, MAX_CHARS).map(({ name }) => name);
  expect(names).toEqual(AGENT_TOOLS.deictic);
});

async function use(name: string, input: unknown, signal = runtime.signal): Promise<ToolOutcome> {
  const context = {
    home: directory,
    workingDirectory: directory,
    env: () => env,
    signal: runtime.signal,
  };
  const tool = createTools(context, MAX_CHARS).find((candidate) => candidate.name === name);
  if (tool === undefined) throw new Error(`no tool ${name}`);
  try {
    return await tool.run(input, signal);
  } catch (error) {
    if (signal.aborted) throw error;
    return { text: error instanceof Error ? error.message : String(error), isError: true };
  }
}

const put = (name: string, text: string) => writeFile(join(directory, name), text);
const get = (name: string) => readFile(join(directory, name), 'utf8');

describe('shell', () => {
  test('runs a command that is longer than Linux lets an argument be', async () => {
    const command = `: ${'字'.repeat(60_000)}\necho done`;
    expect(await use('shell', { command })).toEqual({ text: 'done', isError: false });
  });

  test('returns output and errors of a command in the working directory, with the current environment', async () => {
    env.FLAVOUR = 'mint';
    const { text, isError } = await use('shell', { command: 'pwd; echo $FLAVOUR >&2' });
    expect(text.split('\n').sort()).toEqual([directory, 'mint'].sort());
    expect(isError).toBe(false);
    env.FLAVOUR = 'lemon';
    expect((await use('shell', { command: 'echo $FLAVOUR' })).text).toBe('lemon');
  });

  test('reports a failed command, and kills one that takes too long', async () => {
    expect(await use('shell', { command: 'echo no; exit 3' })).toEqual({
      text: 'no\n[exit code 3]',
      isError: true,
    });
    expect(await use('shell', { command: 'sleep 1000', timeout_seconds: 1 })).toEqual({
      text: '[killed after 1 s]',
      isError: true,
    });
  });

  test('keeps the beginning and end of a long output', async () => {
    const { text } = await use('shell', { command: 'echo first; seq 100000; echo last' });
    expect(text.length).toBeLessThan(MAX_CHARS + 100);
    expect(text).toMatch(/^first\n1\n[\s\S]*characters left out[\s\S]*\nlast$/);
  });

  test('does not wait for background processes', async () => {
    const { text } = await use('shell', { command: 'sleep 1000 & echo started' });
    expect(text).toBe('started');
  });
});

describe('files', () => {
  test('are written with missing directories, and read with line numbers', async () => {
    expect(await use('write_file', { path: 'a/b.txt', content: 'eins\nzwei ü\n' })).toMatchObject({
      isError: false,
    });
    expect(await get('a/b.txt')).toBe('eins\nzwei ü\n');
    expect((await use('read_file', { path: 'a/b.txt' })).text).toBe('1\teins\n2\tzwei ü');
    expect((await use('read_file', { path: 'a/b.txt', first_line: 2, lines: 1 })).text).toBe(
      '2\tzwei ü',
    );
    expect((await use('read_file', { path: 'a/b.txt', lines: 1 })).text).toBe(
      '1\teins\n[1 more lines]',
    );
  });

  test('that cannot be read are reported with the reason', async () => {
    await writeFile(join(directory, 'image'), Buffer.from([0xff, 0xd8, 0, 1]));
    await put('-rf', 'an option?');
    expect((await use('read_file', { path: 'none' })).text).toContain('No such file');
    expect((await use('read_file', { path: '.' })).text).toContain('directory');
    expect((await use('read_file', { path: 'image' })).text).toContain('not UTF-8 text');
    expect((await use('read_file', { path: '-rf' })).text).toBe('1\tan option?');
    expect((await use('read_file', { path: 'a\0b' })).isError).toBe(true);
  });

  test('of endless length are not read completely', async () => {
    await symlink('/dev/zero', join(directory, 'endless'));
    expect((await use('read_file', { path: 'endless' })).text).toContain('larger than 2 MiB');
  });

  test('are edited only where the text occurs exactly once', async () => {
    await put('poem', 'a rose is a $& rose');
    const edit = (old_text: string, new_text: string) =>
      use('edit_file', { path: 'poem', old_text, new_text });
    expect((await edit('tulip', 'x')).text).toContain('does not occur in');
    expect((await edit('rose', 'x')).text).toContain('more than once');
    expect((await edit(' $& ', ' $1 ')).isError).toBe(false);
    expect(await get('poem')).toBe('a rose is a $1 rose');
  });

  test('that are not text are left unchanged', async () => {
    const bytes = Buffer.from([0x61, 0xff, 0x62]);
    await writeFile(join(directory, 'blob'), bytes);
    const outcome = await use('edit_file', { path: 'blob', old_text: 'a', new_text: 'c' });
    expect(outcome.isError).toBe(true);
    expect(await readFile(join(directory, 'blob'))).toEqual(bytes);
  });
});

describe('search and list', () => {
  beforeEach(async () => {
    await mkdir(join(directory, 'src'));
    await mkdir(join(directory, 'node_modules'));
    await put('src/one.ts', 'const tea = 1;\n');
    await put('src/two.md', 'Tea time\n');
    await put('node_modules/x.ts', '');
  });

  /** Restricts the environment to a single program. */
  const only = async (program: string) => {
    const bin = join(directory, '.bin');
    await mkdir(bin);
    const { stdout } = await promisify(execFile)('which', [program]);
    await symlink(stdout.trim(), join(bin, program));
    env.PATH = bin;
  };

  test.each([false, true])('search finds lines (without ripgrep: %s)', async (withoutRipgrep) => {
    if (withoutRipgrep) await only('grep');
    const place = join(directory, 'src');
    expect((await use('search', { pattern: 'te[a]', path: 'src' })).text).toBe(
      `${place}/one.ts:1:const tea = 1;`,
    );
    const both = await use('search', { pattern: 'tea', path: 'src', ignore_case: true });
    expect(both.text.split('\n')).toHaveLength(2);
    const markdown = { pattern: 'tea', path: 'src', glob: '*.md', ignore_case: true };
    expect((await use('search', markdown)).text).toBe(`${place}/two.md:1:Tea time`);
    expect(await use('search', { pattern: '-e coffee', path: 'src' })).toEqual({
      text: '[nothing found]',
      isError: false,
    });
    expect((await use('search', { pattern: '(' })).isError).toBe(true);
    expect((await use('search', { pattern: 'x', path: 'none' })).isError).toBe(true);
  });

  test('search stops at the limit', async () => {
    await put('src/many', 'tea\n'.repeat(100_000));
    const { text } = await use('search', { pattern: 'tea' });
    expect(text).toContain('[truncated]');
    expect(text.length).toBeLessThan(MAX_CHARS + 100);
  });

  test('list_files marks directories with a slash, and leaves out node_modules', async () => {
    expect((await use('list_files', {})).text).toBe('src/');
    expect((await use('list_files', { depth: 2 })).text).toBe('src/\nsrc/one.ts\nsrc/two.md');
    expect((await use('list_files', { path: 'none' })).isError).toBe(true);
  });
});

describe('fetch', () => {
  test('returns bounded text and the text of pages, only over http', async () => {
    const server = createServer((request, response) => {
      if (request.url === '/page') {
        response.setHeader('content-type', 'text/html');
        response.end('<html><script>no()</script><h1>Tea &amp; cake</h1><p>At five.</p></html>');
      } else if (request.url === '/endless') {
        const send = () => {
          while (!response.destroyed && response.write('x'.repeat(65_536)));
        };
        response.on('drain', send);
        send();
      } else response.writeHead(404).end('not here');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    try {
      expect((await use('fetch', { url: `${base}/page` })).text).toBe('Tea & cake\nAt five.');
      expect(await use('fetch', { url: `${base}/none` })).toEqual({
        text: 'The server answered 404.\nnot here',
        isError: true,
      });
      const endless = await use('fetch', { url: `${base}/endless` });
      expect(endless.text.length).toBeLessThan(MAX_CHARS + 100);
      expect((await use('fetch', { url: 'file:///etc/passwd' })).isError).toBe(true);
      expect((await use('fetch', { url: 'data:text/plain,hi' })).isError).toBe(true);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  test('is ended by an interrupt', async () => {
    const server = createServer(() => undefined);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const interrupt = new AbortController();
    const asked = new Promise((resolve) => server.once('request', resolve));
    const outcome = use('fetch', { url: `http://127.0.0.1:${port}` }, interrupt.signal);
    await asked;
    interrupt.abort();
    await expect(outcome).rejects.toThrow('abort');
    server.closeAllConnections();
    server.close();
  });

  test('converts a page with unclosed tags in linear time', () => {
    expect(htmlText('<script>'.repeat(50_000))).toBe('');
    expect(htmlText('a < b')).toBe('a');
    expect(htmlText('a<!-- <p>x</p> -->b')).toBe('a b');
  });
});
