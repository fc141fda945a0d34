import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '@svc/config';
import type { FastifyBaseLogger } from 'fastify';
import { createTransport } from 'nodemailer';

/** A message to one address, as plain text and HTML. */
export interface Message {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

/** Sends mail; rejects when the server did not accept the message. */
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

/** Deadline of a message, however slowly the server responds. */
const SEND_DEADLINE_MS = 30_000;

/** How long a message stays in the outbox. Codes in it are valid for minutes. */
const OUTBOX_MS = 24 * 3_600_000;
/** Shortest time between two searches for old messages. */
const TIDY_MS = 60_000;
/** The most that one search removes, so that the message which it precedes does not wait for long. */
const TIDY_FILES = 1_000;

/**
 * Sends mail by SMTP when a server is configured. All other mail, and mail to this machine itself, goes to the
 * outbox of the data directory.
 */
export function createMailer(
  config: Pick<Config, 'dataDir' | 'mailFrom' | 'smtpUrl'>,
  logger: FastifyBaseLogger,
): Mailer {
  const outbox = createOutboxMailer(join(config.dataDir, 'outbox'), config.mailFrom, logger);
  if (config.smtpUrl === undefined) return outbox;
  return splitMail(outbox, createSmtpMailer(config.smtpUrl.reveal(), config.mailFrom));
}

/** Sends through an SMTP server, which fails when it takes longer than `deadlineMs`. */
export function createSmtpMailer(url: string, from: string, deadlineMs = SEND_DEADLINE_MS): Mailer {
  // Options in the query of the URL override these.
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

/** For installations without an SMTP server: writes messages to files in `directory`, for a day, and to the log. */
function createOutboxMailer(directory: string, from: string, logger: FastifyBaseLogger): Mailer {
  const composer = createTransport(
    { streamTransport: true, buffer: true, newline: 'windows' },
    { from },
  );
  let tidyAt = 0;
  return {
    send: async (message) => {
      const { message: bytes } = await composer.sendMail(message);
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const now = performance.now();
      if (now >= tidyAt) {
        tidyAt = now + TIDY_MS;
        await removeOldMessages(directory).catch((err: unknown) =>
          logger.warn({ err, directory }, 'cannot remove old messages'),
        );
      }
      const file = join(directory, `${stampOf(Date.now())}-${randomUUID()}.eml`);
      await writeFile(file, bytes as Buffer, { mode: 0o600 });
      if (staysHere(message.to)) logger.info({ file }, `mail to ${message.to}`);
      else
        logger.warn(`no SMTP configured: mail to ${message.to} is in ${file}: ${message.subject}`);
    },
    close: () => composer.close(),
  };
}

/** Removes messages whose time is over, by their names, which begin with the time. */
async function removeOldMessages(directory: string): Promise<void> {
  const oldest = stampOf(Date.now() - OUTBOX_MS);
  const names = await readdir(directory);
  const old = names.filter((name) => name.endsWith('.eml') && name < oldest);
  // Another control plane may have removed them.
  for (const name of old.slice(0, TIDY_FILES)) await rm(join(directory, name), { force: true });
}

/** A time as file names have it, which sort like times. */
function stampOf(ms: number): string {
  return new Date(ms).toISOString().replaceAll(':', '-');
}

/** Sends mail for this machine to `here`, all other mail to `away`. */
function splitMail(here: Mailer, away: Mailer): Mailer {
  return {
    send: (message) => (staysHere(message.to) ? here : away).send(message),
    close: () => {
      here.close();
      away.close();
    },
  };
}

/** Names under `localhost` always mean this machine (RFC 6761). */
function staysHere(address: string): boolean {
  return /[@.]localhost$/i.test(address);
}
