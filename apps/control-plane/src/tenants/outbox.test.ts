import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { createLogger, Secret } from '@svc/service-kit';
import { SMTPServer } from 'smtp-server';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createMailer, createSmtpMailer, type Message } from './mail.ts';

const FROM = 'Sandboxes <no-reply@example.com>';

let dataDir: string;
let lines: { level: number; file?: string }[];

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'svc-mail-'));
  lines = [];
});
afterEach(() => rm(dataDir, { recursive: true, force: true }));

const logger = createLogger({
  level: 'info',
  pretty: false,
  destination: { write: (line) => void lines.push(JSON.parse(line)) },
});
const messageTo = (to: string): Message => ({
  to,
  subject: 'the subject',
  text: 'the text\n',
  html: '<p>the page</p>\n',
});
const outbox = () => readdir(join(dataDir, 'outbox'));

/** A mail server on this machine, and the texts that it got. */
async function mailServer() {
  const got: string[] = [];
  const server = new SMTPServer({
    disabledCommands: ['AUTH', 'STARTTLS'],
    onData: (stream, _session, done) => {
      text(stream).then((mail) => {
        got.push(mail);
        done();
      }, done);
    },
  });
  server.listen(0, '127.0.0.1');
  await once(server.server, 'listening');
  const { port } = server.server.address() as AddressInfo;
  return {
    got,
    url: `smtp://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

test('without a mail server, a message is a file that only the service may read', async () => {
  const mailer = createMailer({ dataDir, mailFrom: FROM, smtpUrl: undefined }, logger);
  await mailer.send(messageTo('ada@example.com'));
  await mailer.send(messageTo('operator@svc.localhost'));
  mailer.close();
  const names = (await outbox()).sort();
  expect(names).toHaveLength(2);
  for (const name of names) {
    expect(name).toMatch(/^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z-[0-9a-f-]{36}\.eml$/);
  }
  const file = join(dataDir, 'outbox', names[0] ?? '');
  const mail = await readFile(file, 'utf8');
  for (const line of [`From: ${FROM}`, 'To: ada@example.com', 'Subject: the subject']) {
    expect(mail).toContain(`${line}\r\n`);
  }
  expect(mail).toContain('\r\nthe text\r\n');
  expect(mail).toContain('\r\n<p>the page</p>\r\n');
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect((await stat(join(dataDir, 'outbox'))).mode & 0o777).toBe(0o700);
  // Mail to others is a warning, because nobody gets it.
  expect(lines.map(({ level }) => level)).toEqual([40, 30]);
});

test('a message of two days ago is gone after the next one, and other files stay', async () => {
  const mailer = createMailer({ dataDir, mailFrom: FROM, smtpUrl: undefined }, logger);
  const directory = join(dataDir, 'outbox');
  await mkdir(directory);
  const named = (hours: number, ending: string) =>
    `${new Date(Date.now() - hours * 3_600_000).toISOString().replaceAll(':', '-')}-x.${ending}`;
  const kept = [named(48, 'txt'), named(23, 'eml')];
  for (const name of [...kept, named(48, 'eml')]) await writeFile(join(directory, name), '');
  await mailer.send(messageTo('ada@svc.localhost'));
  mailer.close();
  const names = await outbox();
  expect(names).toHaveLength(3);
  expect(names).toEqual(expect.arrayContaining(kept));
});

test('with a mail server, only mail to this machine is a file', async () => {
  await using server = await mailServer();
  const config = { dataDir, mailFrom: FROM, smtpUrl: new Secret(server.url) };
  const mailer = createMailer(config, logger);
  for (const to of ['ada@example.com', 'ada@localhost.example.com', 'ada@mylocalhost']) {
    await mailer.send(messageTo(to));
  }
  expect(server.got).toHaveLength(3);
  expect(server.got[0]).toContain(`From: ${FROM}\r\n`);
  expect(server.got[0]).toContain('Subject: the subject\r\n');
  await expect(outbox()).rejects.toThrow('ENOENT');
  for (const to of ['operator@localhost', 'operator@svc.LOCALHOST']) {
    await mailer.send(messageTo(to));
  }
  mailer.close();
  expect(server.got).toHaveLength(3);
  expect(await outbox()).toHaveLength(2);
});

test('a mail server that takes too long fails the message', async () => {
  await using server = await mailServer();
  const late = createSmtpMailer(server.url, FROM, 0);
  await expect(late.send(messageTo('ada@example.com'))).rejects.toThrow('too long');
  late.close();
});
