import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCa, issueCertificate } from '@svc/service-kit/tls';
import { request } from 'undici';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createEgress, type Egress, type EgressOptions } from './egress.ts';

let directory: string;
let caFile: string;
let server: Server;
let port: number;
let connections = 0;
const opened: Egress[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-egress-'));
  caFile = join(directory, 'ca.pem');
  const ca = await createCa('test CA', 1);
  await writeFile(caFile, ca.cert);
  const names = ['model.test', '127.0.0.1', '::1'];
  const pair = await issueCertificate(ca, { commonName: 'test', names, days: 1 });
  server = createServer(pair, answer).on('connection', () => {
    connections += 1;
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  port = (server.address() as AddressInfo).port;
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map((egress) => egress.close()));
});

afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await rm(directory, { recursive: true });
});

function answer({ url }: IncomingMessage, response: ServerResponse): void {
  if (url === '/away') response.writeHead(302, { location: '/' });
  response.end('reached');
}

function open(options: Partial<EgressOptions> = {}): Egress {
  const egress = createEgress({ allowHosts: [], caFile, ...options });
  opened.push(egress);
  return egress;
}

/** Resolves each lookup to the next addresses of the list. */
function resolving(...answers: string[][]) {
  return async () => answers.shift() ?? [];
}

/** The outcome of a request: status and body, or the reason for its refusal. */
async function outcome(egress: Egress, url: string): Promise<string> {
  try {
    const { statusCode, body } = await egress.request(url);
    return `${statusCode} ${await body.text()}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

describe('connections', () => {
  test('are refused to a name that resolves first to a public and then to a private address', async () => {
    const egress = open({ resolve: resolving(['8.8.8.8'], ['127.0.0.1']) });
    const before = connections;
    const url = `https://model.test:${port}/`;
    expect(await egress.policy.problemOf(url)).toBeUndefined();
    expect(await outcome(egress, url)).toBe('the address has a host that is not public');
    expect(connections).toBe(before);
  });

  test('are refused to a name with one private address among public ones', async () => {
    const egress = open({ resolve: resolving(['8.8.8.8', '127.0.0.1']) });
    expect(await outcome(egress, `https://model.test:${port}/`)).toContain('not public');
  });

  test.each([
    ['127.0.0.1'],
    ['2130706433'],
    ['0x7f.1'],
    ['[::1]'],
    ['[::ffff:127.0.0.1]'],
    ['169.254.169.254'],
    ['[fd00:ec2::254]'],
  ])('are refused to the private address %s in a URL', async (host) => {
    const egress = open();
    const before = connections;
    expect(await outcome(egress, `https://${host}:${port}/`)).toContain('not public');
    expect(connections).toBe(before);
  });

  test('are refused by the dispatcher even if the URL was not checked', async () => {
    const { dispatcher } = open({ resolve: resolving(['127.0.0.1'], ['8.8.8.8']) });
    for (const [url, problem] of [
      [`https://model.test:${port}/`, 'not public'],
      ['https://model.test:22/', 'port 443'],
      [`http://model.test:${port}/`, 'must use https'],
    ] as const) {
      await expect(request(url, { dispatcher })).rejects.toThrow(problem);
    }
  });

  test('are allowed to an exception, only on its port', async () => {
    const resolve = async () => ['127.0.0.1'];
    const url = `https://model.test:${port}/`;
    expect(await outcome(open({ allowHosts: [{ host: 'model.test', port }], resolve }), url)).toBe(
      '200 reached',
    );
    const other = open({ allowHosts: [{ host: 'model.test', port: port - 1 }], resolve });
    expect(await outcome(other, url)).toContain('not public');
    const literal = open({ allowHosts: [{ host: '127.0.0.1', port: undefined }] });
    expect(await outcome(literal, `https://127.0.0.1:${port}/`)).toBe('200 reached');
  });
});

describe('requests', () => {
  const allowHosts = [{ host: '127.0.0.1', port: undefined }];

  test('with credentials or over plain HTTP are refused', async () => {
    const egress = open({ allowHosts });
    expect(await outcome(egress, `https://u:p@127.0.0.1:${port}/`)).toContain('credentials');
    expect(await outcome(egress, `http://127.0.0.1:${port}/`)).toContain('https');
  });

  test('return a redirect instead of following it', async () => {
    const egress = open({ allowHosts });
    expect(await outcome(egress, `https://127.0.0.1:${port}/away`)).toBe('302 reached');
  });

  test('to a server with an unknown CA fail', async () => {
    const egress = open({ allowHosts, caFile: undefined });
    expect(await outcome(egress, `https://127.0.0.1:${port}/`)).toMatch(/certificate/);
  });

  test('in progress are aborted by close', async () => {
    const silent = createServer();
    silent.on('connection', (socket) => socket.on('error', () => undefined));
    silent.listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const egress = open({ allowHosts });
    const pending = outcome(egress, `https://127.0.0.1:${(silent.address() as AddressInfo).port}/`);
    await egress.close();
    expect(await pending).not.toMatch(/^200/);
    silent.close();
  });
});

test('names a CA file that contains no certificate', async () => {
  const file = join(directory, 'empty.pem');
  await writeFile(file, 'nothing\n');
  expect(() => createEgress({ allowHosts: [], caFile: file })).toThrow(file);
});
