import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { ensureLocalTls } from '@svc/service-kit';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { Harness } from '../../test/harness.ts';
import { createSmtpMailer } from './mail.ts';

const FROM = 'Sandboxes <no-reply@example.com>';
const MESSAGE = { to: 'ada@example.com', subject: 's', text: 't', html: '<p>t</p>' };

let harness: Harness;
let tls: Awaited<ReturnType<typeof ensureLocalTls>>;
const open: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  harness = await Harness.start();
  tls = await ensureLocalTls({ directory: `${harness.dataDir}/tls` });
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((close) => close()));
});
afterAll(() => harness?.[Symbol.asyncDispose]());

interface Received {
  readonly mail: string;
  readonly user: unknown;
  readonly secure: boolean;
}

/** A mail server that records its messages. */
async function mailServer(options: SMTPServerOptions): Promise<{ port: number; got: Received[] }> {
  const got: Received[] = [];
  const server = new SMTPServer({
    ...options,
    onData: (stream, session, done) => {
      text(stream).then((mail) => {
        got.push({ mail, user: session.user, secure: session.secure });
        done();
      }, done);
    },
  });
  // A client that does not trust the certificate hangs up.
  server.on('error', () => undefined);
  server.listen(0, '127.0.0.1');
  await once(server.server, 'listening');
  open.push(() => new Promise<void>((resolve) => server.close(resolve)));
  return { port: portOf(server.server as Server), got };
}

/** A server that handles its connections with `talk`. */
async function rawServer(talk: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    talk(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  open.push(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return portOf(server);
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

async function send(url: string, deadlineMs?: number): Promise<void> {
  const mailer = createSmtpMailer(url, FROM, deadlineMs);
  try {
    await mailer.send(MESSAGE);
  } finally {
    mailer.close();
  }
}

const trust = () => `tls.ca=${encodeURIComponent(tls.ca)}`;
const auth: SMTPServerOptions['onAuth'] = ({ username, password }, _session, done) => {
  if (username === 'svc' && password === 'p:w/d') done(null, { user: username });
  else done(new Error('wrong password'));
};

describe('a mail server', () => {
  test('accepts implicit TLS and a password', async () => {
    const { port, got } = await mailServer({ secure: true, ...tls, onAuth: auth });
    await send(`smtps://svc:p%3Aw%2Fd@localhost:${port}?${trust()}`);
    expect(got).toMatchObject([{ user: 'svc', secure: true }]);
    await expect(send(`smtps://svc:wrong@localhost:${port}?${trust()}`)).rejects.toThrow();
    expect(got).toHaveLength(1);
  });

  test('gets STARTTLS when it offers it, and no mail when STARTTLS is required but missing', async () => {
    const { port, got } = await mailServer({ ...tls, disabledCommands: ['AUTH'] });
    await send(`smtp://localhost:${port}?${trust()}`);
    expect(got).toMatchObject([{ secure: true }]);
    const plain = await mailServer({ disabledCommands: ['AUTH', 'STARTTLS'] });
    await expect(send(`smtp://localhost:${plain.port}?requireTLS=true`)).rejects.toThrow();
    expect(plain.got).toEqual([]);
  });

  test('with an untrusted certificate gets no mail', async () => {
    const { port, got } = await mailServer({ secure: true, ...tls, disabledCommands: ['AUTH'] });
    await expect(send(`smtps://localhost:${port}`)).rejects.toThrow(/certificate/);
    expect(got).toEqual([]);
  });

  test('that never sends a greeting times out', async () => {
    const port = await rawServer(() => undefined);
    await expect(send(`smtp://127.0.0.1:${port}?greetingTimeout=200`)).rejects.toThrow(
      /[Gg]reeting/,
    );
  });

  test('that keeps sending without progress times out', async () => {
    const port = await rawServer((socket) => {
      const drip = setInterval(() => socket.write('220-wait\r\n'), 20);
      socket.on('close', () => clearInterval(drip));
    });
    await expect(send(`smtp://127.0.0.1:${port}`, 300)).rejects.toThrow('too long');
  });
});

describe('signing up by mail', () => {
  test('the message contains the code as plain text and as HTML', async () => {
    const { port, got } = await mailServer({ disabledCommands: ['AUTH', 'STARTTLS'] });
    const plane = await harness.startAnother({
      SVC_SMTP_URL: `smtp://127.0.0.1:${port}`,
      SVC_MAIL_FROM: FROM,
    });
    const email = 'eve@example.com';
    const asked = await harness.call('POST', '/v1/auth/login', { json: { email }, plane });
    expect(asked.status).toBe(200);
    const mail = got[0]?.mail ?? '';
    const code = /^Subject: (\d{6}) is your sign-in code/m.exec(mail)?.[1] ?? 'none';
    expect(mail).toContain('Content-Type: multipart/alternative');
    const [, plain = '', html = ''] = mail.split(/^Content-Type: text\/(?=plain|html)/m);
    expect(plain).toContain(`Your sign-in code is ${code}.`);
    expect(html).toContain(`>${code}</p>`);
    expect(html).not.toMatch(/<script|<img|<link|http/);
    const json = { email, code };
    expect((await harness.call('POST', '/v1/auth/verify-otp', { json, plane })).status).toBe(200);
    await plane.close();
  });

  test.each([
    ['refuses the sender', { onMailFrom: refuse }],
    ['refuses the address', { onRcptTo: refuse }],
  ])('a server that %s makes it 500, and the code is worth nothing', async (_, options) => {
    const { port } = await mailServer({ disabledCommands: ['AUTH', 'STARTTLS'], ...options });
    const plane = await harness.startAnother({ SVC_SMTP_URL: `smtp://127.0.0.1:${port}` });
    const email = `refused-${Object.keys(options)[0]?.toLowerCase()}@example.com`;
    for (const path of ['/v1/auth/login', '/v1/auth/register', '/v1/tenants']) {
      const answer = await harness.call('POST', path, { json: { email }, plane });
      expect(answer).toMatchObject({ status: 500, body: { code: 'email_send_failed' } });
      expect(answer.text).not.toContain('mailbox');
    }
    const { rows } = await harness.sql.query('select * from otp_codes where email = $1', [email]);
    expect(rows).toEqual([]);
    await plane.close();
  });
});

function refuse(_address: unknown, _session: unknown, done: (error: Error) => void): void {
  done(new Error('no such mailbox here'));
}
