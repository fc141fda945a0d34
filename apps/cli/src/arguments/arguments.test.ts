import { describe, expect, test } from 'vitest';
import { shellCommand } from '../commands/sandbox/exec.ts';
import { parseTemplate } from './choices.ts';
import { collectSandboxId, parseSandboxId } from './ids.ts';
import { parseLocation } from './location.ts';
import { ArgumentError, collectPair, parseDuration, parseEmail } from './parsers.ts';
import { parseDisk, parseMemory, parseVcpu } from './sandbox-size.ts';
import { parseWorkspaceFile, parseWorkspaceId } from './workspace.ts';

const ID = `vm_${'0a'.repeat(16)}`;

describe('valid arguments', () => {
  test.each([
    ['90', 90],
    ['90s', 90],
    ['15m', 900],
    ['2h', 7200],
  ])('duration %s is parsed into seconds', (text, seconds) => {
    expect(parseDuration(text)).toBe(seconds);
  });

  test.each([
    ['512', 512],
    ['512M', 512],
    ['2g', 2048],
    ['1.5GiB', 1536],
  ])('memory size %s is parsed into MiB', (text, mib) => {
    expect(parseMemory(text)).toBe(mib);
  });

  test('other values are parsed and normalised', () => {
    expect(parseVcpu('8')).toBe(8);
    expect(parseDisk('8G')).toBe(8192);
    expect(parseEmail(' Ada@Example.COM ')).toBe('ada@example.com');
    expect(parseTemplate('standard')).toBe('standard');
    expect(parseSandboxId(ID)).toBe(ID);
    expect(collectSandboxId(ID, ['vm_x'])).toEqual(['vm_x', ID]);
    expect(collectPair('B=c=d', { A: '1' })).toEqual({ A: '1', B: 'c=d' });
  });

  test('workspaces have two names, and a path where a file is meant', () => {
    const id = { appId: 'my-app', capsetId: 'c' };
    expect(parseWorkspaceId('my-app/c')).toEqual(id);
    expect(parseWorkspaceFile('my-app/c:/a/b')).toEqual({ id, path: 'a/b' });
    for (const text of ['my-app', 'my-app/', 'a/b/c', 'my-app/c:file']) {
      expect(() => parseWorkspaceId(text)).toThrow(ArgumentError);
    }
    expect(() => parseWorkspaceFile('my-app/c')).toThrow(ArgumentError);
  });

  test('locations are in a sandbox, local, or -', () => {
    expect(parseLocation('-')).toEqual({ kind: 'standard' });
    expect(parseLocation('./a:b')).toEqual({ kind: 'local', path: './a:b' });
    expect(parseLocation(`${ID}:/tmp/a:b`)).toEqual({ kind: 'sandbox', id: ID, path: '/tmp/a:b' });
  });
});

describe('invalid arguments', () => {
  test.each<[string, string, (text: string) => unknown]>([
    ['duration', '0', parseDuration],
    ['duration', '1d', parseDuration],
    ['duration', '', parseDuration],
    ['vcpu', '9', parseVcpu],
    ['vcpu', '1e0', parseVcpu],
    ['memory', '99', parseMemory],
    ['memory', '2X', parseMemory],
    ['memory', '0.3M', parseMemory],
    ['disk', '-8G', parseDisk],
    ['email', 'ada', parseEmail],
    ['template', 'windows', parseTemplate],
    ['sandbox id', 'vm_1', parseSandboxId],
    ['pair', '=x', collectPair],
    ['location', `${ID}:tmp/a`, parseLocation],
    ['location', `${ID}:/tmp/../etc/passwd`, parseLocation],
    ['location', 'vm_1:/tmp/a', parseLocation],
  ])('%s %j is rejected with a hint and an example', (_kind, text, parse) => {
    expect(() => parse(text)).toThrow(ArgumentError);
    expect(() => parse(text)).toThrow(/hint: .*\n {2}example: /s);
  });
});

describe('the shell command of an exec', () => {
  test('passes a single argument to the shell unchanged', () => {
    expect(shellCommand(['echo $HOME | wc'])).toBe('echo $HOME | wc');
  });

  test('leaves out a leading --', () => {
    expect(shellCommand(['--', 'ls', '--', '-l'])).toBe('ls -- -l');
    expect(shellCommand(['--', 'a | b'])).toBe('a | b');
  });

  test('quotes several arguments so that the shell sees exactly these', () => {
    expect(shellCommand(['printf', '%s\n', "it's", '', '/a-b.c'])).toBe(
      `printf '%s\n' 'it'\\''s' '' /a-b.c`,
    );
  });
});
