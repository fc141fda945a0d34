import { randomUUID } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { FastifyBaseLogger } from 'fastify';
import { createTransport } from 'nodemailer';

/** A message to one address, in both forms. */
export interface Message {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

/** Sends mail; rejects when the message was not handed over. */
export interface Mailer {
  send(message: Message): Promise<void>;
  close(): void;
}

const SMTP_DEADLINES = {
  connectionTimeout: 10_000,
  greetingTimeout: 10_000,
  socketTimeout: 20_000,
  dnsTimeout: 10_000,
};

/** However slowly the server goes on talking, a message is sent or given up by then. */
const SEND_DEADLINE_MS = 30_000;

/** Sends through an SMTP server; a server that takes longer than `deadlineMs` counts as failed. */
export function createSmtpMailer(url: string, from: string, deadlineMs = SEND_DEADLINE_MS): Mailer {
  // Options in the URL's query win over these.
  const transport = createTransport({ url, ...SMTP_DEADLINES }, { from });
  return {
    send: async (message) => {
      const late = Promise.withResolvers<never>();
      const timer = setTimeout(
        () => late.reject(new Error('The mail server takes too long.')),
        deadlineMs,
      );
      try {
        await Promise.race([transport.sendMail(message), late.promise]);
      } finally {
        clearTimeout(timer);
      }
    },
    close: () => transport.close(),
  };
}

/** Without an SMTP server: messages become files of `directory`, and the log says what they say. */
export function createOutboxMailer(
  directory: string,
  from: string,
  logger: FastifyBaseLogger,
): Mailer {
  const composer = createTransport(
    { streamTransport: true, buffer: true, newline: 'windows' },
    { from },
  );
  return {
    send: async (message) => {
      const { message: bytes } = await composer.sendMail(message);
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const stamp = new Date().toISOString().replaceAll(':', '-');
      const file = join(directory, `${stamp}-${randomUUID()}.eml`);
      await writeFile(file, bytes as Buffer, { mode: 0o600 });
      if (staysHere(message.to)) logger.info({ file }, `mail to ${message.to}`);
      else
        logger.warn(`no SMTP configured: mail to ${message.to} is in ${file}: ${message.subject}`);
    },
    close: () => composer.close(),
  };
}

/** Mail to addresses of this machine goes to `here`, all other mail to `away`. */
export function splitMail(here: Mailer, away: Mailer): Mailer {
  return {
    send: (message) => (staysHere(message.to) ? here : away).send(message),
    close: () => {
      here.close();
      away.close();
    },
  };
}

/** Names under `localhost` mean this machine, everywhere (RFC 6761): no server is asked about them. */
function staysHere(address: string): boolean {
  return /[@.]localhost$/i.test(address);
}
