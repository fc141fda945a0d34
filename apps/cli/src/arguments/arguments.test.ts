import { describe, expect, test } from 'vitest';
import { ArgumentError } from './argument-error.ts';
import { parseDuration } from './duration.ts';
import { parseEmail } from './email.ts';
import { parseLocation } from './location.ts';
import { parseDisk, parseMemory, parseVcpu } from './numbers.ts';
import { collectPair } from './pairs.ts';
import { collectSandboxId, parseSandboxId } from './sandbox-id.ts';
import { shellCommand } from './shell.ts';
import { parseTemplate } from './template.ts';

const ID = `vm_${'0a'.repeat(16)}`;

describe('values that parsers accept', () => {
  test.each([
    ['90', 90],
    ['90s', 90],
    ['15m', 900],
    ['2h', 7200],
  ])('duration %s', (text, seconds) => {
    expect(parseDuration(text)).toBe(seconds);
  });

  test.each([
    ['512', 512],
    ['512M', 512],
    ['2g', 2048],
    ['1.5GiB', 1536],
  ])('memory %s', (text, mib) => {
    expect(parseMemory(text)).toBe(mib);
  });

  test('the rest', () => {
    expect(parseVcpu('8')).toBe(8);
    expect(parseDisk('8G')).toBe(8192);
    expect(parseEmail(' Ada@Example.COM ')).toBe('ada@example.com');
    expect(parseTemplate('standard')).toBe('standard');
    expect(parseSandboxId(ID)).toBe(ID);
    expect(collectSandboxId(ID, ['vm_x'])).toEqual(['vm_x', ID]);
    expect(collectPair('B=c=d', { A: '1' })).toEqual({ A: '1', B: 'c=d' });
  });

  test('locations', () => {
    expect(parseLocation('-')).toEqual({ kind: 'standard' });
    expect(parseLocation('./a:b')).toEqual({ kind: 'local', path: './a:b' });
    expect(parseLocation(`${ID}:/tmp/a:b`)).toEqual({ kind: 'sandbox', id: ID, path: '/tmp/a:b' });
  });
});

describe('values that parsers refuse, with a hint and an example', () => {
  test.each<[string, (text: string) => unknown, string]>([
    ['duration', parseDuration, '0'],
    ['duration', parseDuration, '1d'],
    ['duration', parseDuration, ''],
    ['vcpu', parseVcpu, '9'],
    ['vcpu', parseVcpu, '1e0'],
    ['memory', parseMemory, '99'],
    ['memory', parseMemory, '2X'],
    ['memory', parseMemory, '0.3M'],
    ['disk', parseDisk, '-8G'],
    ['email', parseEmail, 'ada'],
    ['template', parseTemplate, 'windows'],
    ['sandbox id', parseSandboxId, 'vm_1'],
    ['pair', collectPair, '=x'],
    ['location', parseLocation, `${ID}:tmp/a`],
    ['location', parseLocation, `${ID}:/tmp/../etc/passwd`],
    ['location', parseLocation, 'vm_1:/tmp/a'],
  ])('%s', (_what, parse, text) => {
    expect(() => parse(text)).toThrow(ArgumentError);
    expect(() => parse(text)).toThrow(/hint: .*\n {2}example: /s);
  });
});

describe('the shell command of words', () => {
  test('one word is a command as it is', () => {
    expect(shellCommand(['echo $HOME | wc'])).toBe('echo $HOME | wc');
  });

  test('a -- in front of them is not one of them', () => {
    expect(shellCommand(['--', 'ls', '--', '-l'])).toBe('ls -- -l');
    expect(shellCommand(['--', 'a | b'])).toBe('a | b');
  });

  test('several are quoted so that the shell sees exactly them', () => {
    expect(shellCommand(['printf', '%s\n', "it's", '', '/a-b.c'])).toBe(
      `printf '%s\n' 'it'\\''s' '' /a-b.c`,
    );
  });
});
