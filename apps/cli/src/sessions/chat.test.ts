import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { commandLine, type Outcome, startSvc } from '../../test/run-svc.ts';

// Every command is a separate process, which takes seconds to start on a loaded machine.
vi.setConfig({ testTimeout: 120_000 });

const ID = '019aa1b2-c3d4-7e8f-9a0b-1c2d3e4f5a6b';
const SANDBOX = 'vm_019aa1b2c3d47e8f9a0b1c2d3e4f5a6b';

let directory: string;
let server: Server;
let environment: Record<string, string>;
let svc: (args: readonly string[], input?: string) => Promise<Outcome>;
/** Frames received from the command line. */
const received: { type: string; prompt?: string; id?: string; command?: string }[] = [];
let agentStatus = 'completed';
let status = 'active';
let template = 'standard';
let seq = 0;

/** A service with one session, whose agent repeats its prompts and never ends the task `hang`. */
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-chat-'));
  const sockets = new WebSocketServer({ noServer: true });
  server = createServer((request, response) => {
    const origin = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const access = {
      chat_session_id: ID,
      jwt: 'token',
      connect_url: `ws://${origin}/v1/sessions/${ID}/ws`,
      expires_at: new Date(Date.now() + 600_000).toISOString(),
    };
    const record = { ...access, status, template, agent: { kind: 'deictic' }, llm: { model: 'm' } };
    const answers: Record<string, unknown> = {
      'POST /v1/sessions': access,
      'POST /v1/sessions/resume': { ...access, resumed_from: { previous_status: 'failed' } },
      'GET /v1/sessions': {
        sessions: [{ ...record, created_at: access.expires_at }],
        total: 3,
      },
      [`POST /v1/sandboxes/${SANDBOX}/connect`]: {
        ...access,
        connect_url: `ws://${origin}/v1/sessions/one-shot/ws`,
      },
      [`GET /v1/sandboxes/${SANDBOX}`]: { state: 'running', agent_status: agentStatus },
      [`GET /v1/sessions/${ID}`]: record,
      [`DELETE /v1/sessions/${ID}`]: { chat_session_id: ID, status: 'completed' },
      [`DELETE /v1/sessions/${ID}?erase=true`]: {
        chat_session_id: ID,
        status: 'completed',
        erased_at: access.expires_at,
      },
    };
    request.resume();
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(answers[`${request.method} ${request.url}`]));
  });
  server.on('upgrade', (request, stream, head) => {
    const isOneShot = request.url?.includes('/one-shot/') === true;
    sockets.handleUpgrade(request, stream, head, isOneShot ? serveOneShot : serve);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  environment = {
    HOME: directory,
    XDG_CONFIG_HOME: join(directory, 'config'),
    SVC_DATA_DIR: directory,
    SVC_BASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    SVC_API_KEY: 'key',
  };
  svc = commandLine(environment);
});

afterAll(async () => {
  server.close();
  server.closeAllConnections();
  await rm(directory, { recursive: true, force: true });
});

/** An agent that says a word and exits. */
function serveOneShot(socket: WebSocket): void {
  socket.send(JSON.stringify({ type: 'ready', model: 'm', resumed: false, last_seq: 0 }));
  socket.send(JSON.stringify({ type: 'text_delta', data: 'word', seq: 1, ts: 'now' }));
  socket.close(1000, 'agent exited');
}

function serve(socket: WebSocket): void {
  const send = (frame: object) => {
    seq += 1;
    socket.send(JSON.stringify({ ...frame, seq, ts: 'now' }));
  };
  socket.send(
    JSON.stringify({ type: 'ready', agent: 'deictic', model: 'm', resumed: false, last_seq: seq }),
  );
  socket.on('error', () => undefined);
  socket.on('message', (data) => {
    const frame = JSON.parse(data.toString());
    received.push(frame);
    const { id, prompt, type } = frame;
    if (type === 'interrupt') {
      send({ type: 'task_completed', id, status: 'interrupted', result: '' });
    } else if (type === 'exec') {
      send({ type: 'stdout', data: `ran ${frame.command}\n`, id });
      send({ type: 'exit', exit_code: 0, id });
    } else if (type === 'task') {
      send({ type: 'task_started', id });
      send({ type: 'tool_call', id: 't', name: 'shell', arguments: { command: 'true' } });
      if (prompt === 'hang') return;
      send({ type: 'text_delta', data: `you said ${prompt}` });
      const isBad = prompt === 'fail';
      send({ type: 'task_completed', id, status: isBad ? 'failed' : 'completed', result: '' });
    }
  });
}

test('--task runs one task, prints only its answer to standard output, and exits', async () => {
  const { code, output, errors } = await svc(['session', 'start', '--task', 'hello']);
  expect({ code, output }, errors).toEqual({ code: 0, output: 'you said hello\n' });
  expect(errors).toContain(`session ${ID}`);
  expect(errors).toContain('→ shell true');
  expect(errors).toContain(`svc session attach ${ID}`);
});

test('a failed task makes the exit code 1', async () => {
  expect(await svc(['session', 'start', '--task', 'fail'])).toMatchObject({ code: 1 });
});

test('runs each line of standard input as a prompt if it is not a terminal', async () => {
  const { code, output } = await svc(['session', 'attach', ID], 'one\n\n!ls -l\ntwo\n');
  expect(output).toBe('you said one\nran ls -l\nyou said two\n');
  expect(code).toBe(0);
});

test('Ctrl-C interrupts the task and the chat continues', async () => {
  const child = startSvc(environment, ['session', 'resume', ID]);
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += chunk;
  });
  child.stdin.write('hang\n');
  await expect.poll(() => errors).toContain('→ shell true');
  expect(errors).toContain('previous status: failed');
  child.kill('SIGINT');
  await expect.poll(() => errors).toContain('interrupted');
  const { type, id } = received.at(-1) ?? {};
  expect({ type, id }).toEqual({ type: 'interrupt', id: received.at(-2)?.id });
  child.stdin.end('after\n');
  expect(await once(child, 'close')).toEqual([0, null]);
});

test('Ctrl-C pressed twice leaves the chat', async () => {
  const child = startSvc(environment, ['session', 'attach', ID]);
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += chunk;
  });
  await expect.poll(() => errors).toContain('connected to deictic');
  child.kill('SIGINT');
  await expect.poll(() => errors).toContain('again');
  child.kill('SIGINT');
  expect(await once(child, 'close')).toEqual([1, null]);
  expect(errors).toContain('disconnected;');
});

test('shows the desktop of a session that has one in a local page, until Ctrl-C', async () => {
  await svc(['session', 'start', '--task', 'hello']);
  const without = await svc(['session', 'watch', ID, '--no-open']);
  expect(without).toMatchObject({ code: 1, errors: expect.stringContaining('no_desktop') });
  expect((await svc(['session', 'watch', ID, '--fps', '6'])).code).toBe(1);
  template = 'cua';
  const child = startSvc(environment, ['session', 'watch', ID, '--no-open']);
  let [output, errors] = ['', ''];
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  child.stderr.on('data', (chunk) => {
    errors += chunk;
  });
  await expect.poll(() => output).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#[\w-]{32}\n$/);
  const page = await fetch(output.trim());
  expect(await page.text()).toContain('<canvas');
  child.kill('SIGINT');
  expect(await once(child, 'close')).toEqual([0, null]);
  expect(errors).toContain('watching has ended');
  template = 'standard';
});

test('lists and ends sessions, and says how to continue one that is over or was started elsewhere', async () => {
  const list = await svc(['session', 'list']);
  expect(list.output).toMatch(new RegExp(`^ID +STATUS.*\n${ID} +active +deictic +m +standard`));
  expect(list.errors).toBe('svc: 1 of 3\n');
  expect((await svc(['session', 'rm', ID])).output).toBe(`${ID} completed\n`);
  expect((await svc(['session', 'rm', '--erase', ID])).output).toBe(`${ID} erased\n`);
  const erased = await svc(['session', 'rm', '--erase', '--json', ID]);
  expect(JSON.parse(erased.output)).toMatchObject({ erased_at: expect.any(String) });
  const elsewhere = await svc(['session', 'attach', ID]);
  expect(elsewhere).toMatchObject({ code: 1, errors: expect.stringMatching(/session_not_ours/) });
  status = 'completed';
  const over = await svc(['session', 'attach', ID]);
  expect(over.errors).toMatch(/the session is over \(completed\)\n.*svc session resume/);
  expect((await svc(['session', 'attach', 'x'])).errors).toContain('is not a session id');
});

test('watches the agent of a sandbox until it exits, and takes over its outcome', async () => {
  for (const [outcome, code] of [
    ['completed', 0],
    ['failed', 1],
  ] as const) {
    agentStatus = outcome;
    const watched = await svc(['sandbox', 'attach', SANDBOX, '--after', '0', '--watch']);
    expect(watched).toMatchObject({ code, output: expect.stringMatching(/^word/) });
    expect(watched.errors).toContain(`the agent has ended: ${outcome}; the sandbox is running`);
  }
});
