import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { SMTPServer } from 'smtp-server';
import { expect, test } from 'vitest';
import { Harness } from '../../test/harness.ts';

test('with an SMTP server, only the mail contains the code', async () => {
  const mails: string[] = [];
  const server = new SMTPServer({
    disabledCommands: ['AUTH', 'STARTTLS'],
    onData: (stream, _session, done) => {
      text(stream).then(
        (mail) => {
          mails.push(mail);
          done();
        },
        (error: Error) => done(error),
      );
    },
  });
  server.listen(0, '127.0.0.1');
  await once(server.server, 'listening');
  const address = server.server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  await using harness = await Harness.start({
    SVC_SMTP_URL: `smtp://127.0.0.1:${port}`,
    SVC_MAIL_FROM: 'Sandboxes <no-reply@example.com>',
  });
  const email = 'ada@example.com';
  expect((await harness.call('POST', '/v1/tenants', { json: { email } })).status).toBe(200);
  expect(mails).toHaveLength(1);
  expect(mails[0]).toContain('From: Sandboxes <no-reply@example.com>');
  expect(mails[0]).toContain(`To: ${email}`);
  const code = /^Subject: (\d{6}) /m.exec(mails[0] ?? '')?.[1];
  const answer = await harness.call('POST', '/v1/tenants/verify', { json: { email, code } });
  expect(answer.status).toBe(200);
  await expect(harness.lastCode(email)).rejects.toThrow('ENOENT');
  await new Promise<void>((resolve) => server.close(resolve));
});

test('mail to this machine stays on it, with or without SMTP', async () => {
  // Nothing listens there, so sending a message would fail.
  await using harness = await Harness.start({ SVC_SMTP_URL: 'smtp://127.0.0.1:1' });
  const email = 'operator@svc.localhost';
  expect((await harness.call('POST', '/v1/tenants', { json: { email } })).status).toBe(200);
  const code = await harness.lastCode(email);
  const answer = await harness.call('POST', '/v1/tenants/verify', { json: { email, code } });
  expect(answer.status).toBe(200);
  const away = await harness.call('POST', '/v1/tenants', { json: { email: 'ada@example.com' } });
  expect(away.status).toBe(500);
});
