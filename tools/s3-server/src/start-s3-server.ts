import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { untilAborted } from '@svc/service-kit/concurrency';
import { createBucket } from './create-bucket.ts';
import type { S3ServerSettings } from './settings.ts';

const PROGRAM = fileURLToPath(new URL('serve_swift.py', import.meta.url));
/** Debian's Python, which has Debian's packages; the first one on the PATH may be another. */
const PYTHON = '/usr/bin/python3';
const START_MS = 60_000;
const STOP_MS = 10_000;
const MAX_ERRORS = 64 * 1024;

/** A running S3 server. */
export interface S3Server {
  readonly settings: S3ServerSettings;
  /** Ends the server and removes its directory. */
  close(): Promise<void>;
}

/** Starts a server with one empty bucket. Throws if it does not answer within a minute. */
export async function startS3Server(): Promise<S3Server> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-s3-server-'));
  const credentials = { accessKeyId: 'test:svc', secretAccessKey: 'secret-of-the-test-server' };
  const { accessKeyId, secretAccessKey } = credentials;
  const child = spawn(PYTHON, [PROGRAM, directory, accessKeyId, secretAccessKey], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8', PYTHONDONTWRITEBYTECODE: '1' },
  });
  const close = async () => {
    await stop(child);
    await rm(directory, { recursive: true, force: true });
  };
  try {
    const port = await untilAborted(portOf(child), AbortSignal.timeout(START_MS));
    const endpoint = `http://127.0.0.1:${port}`;
    const settings = { endpoint, region: 'us-east-1', bucket: 'objects', ...credentials };
    await createBucket(settings, AbortSignal.timeout(START_MS));
    return { settings, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The port that the server prints once it listens. */
async function portOf(child: ChildProcessWithoutNullStreams): Promise<number> {
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    if (errors.length < MAX_ERRORS) errors += text;
  });
  for await (const line of createInterface(child.stdout)) {
    const [, port] = /^listening (\d+)$/.exec(line) ?? [];
    if (port !== undefined) return Number(port);
  }
  throw new Error(`the S3 server did not start: ${errors}`);
}

async function stop(child: ChildProcessWithoutNullStreams): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.stdin.end();
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  await exited;
  clearTimeout(timer);
}
