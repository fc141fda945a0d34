import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { until } from '@svc/service-driver';

const STOP_MS = 10_000;
const UNIX = 'unix@';
/** The column of `show stat` that says whether a server is up, from 0. */
const STATUS = 17;

/** An address on which HAProxy forwards TCP connections. Addresses are `10.0.0.5:8443` or `unix@/run/x.sock`. */
export interface Frontend {
  readonly bind: string;
  readonly servers: readonly string[];
  /** Whether its servers are components of svc: one is used only while `GET /readyz` over HTTPS answers 200. Default: no. */
  readonly hasComponents?: boolean;
  /** Whether each connection to a server begins with a PROXY header. Default: no. */
  readonly sendsProxyHeaders?: boolean;
}

export interface HaProxyOptions {
  readonly name: string;
  /** Holds the configuration and the log. */
  readonly directory: string;
  /** Program and arguments that run a command where the proxy is to run. */
  readonly launcher: readonly string[];
  readonly frontends: readonly Frontend[];
}

/** HAProxy, configured as docs/operations.md tells operators. */
export class HaProxy implements AsyncDisposable {
  readonly #child: ChildProcess;
  /** The socket for commands. */
  readonly #control: string;

  private constructor(child: ChildProcess, control: string) {
    this.#child = child;
    this.#control = control;
  }

  /** Starts it, and waits until every frontend accepts connections from here. */
  static async start({ name, directory, launcher, frontends }: HaProxyOptions): Promise<HaProxy> {
    const file = join(directory, `haproxy-${name}.cfg`);
    const control = join(directory, `haproxy-${name}.sock`);
    await writeFile(file, configuration(frontends, control));
    const [program = '', ...words] = [...launcher, 'haproxy', '-db', '-f', file];
    await using log = await open(join(directory, `haproxy-${name}.log`), 'a');
    const child = spawn(program, words, { stdio: ['ignore', log.fd, log.fd] });
    const proxy = new HaProxy(child, control);
    for (const { bind } of frontends) {
      await until(`HAProxy listens on ${bind}`, async () => {
        if (child.exitCode !== null) throw new Error(`HAProxy ended with ${child.exitCode}`);
        return accepts(bind);
      });
    }
    return proxy;
  }

  /** Waits until it sends connections to every server with this host, whose health checks have to pass first. */
  async untilUsed(host: string): Promise<void> {
    await until(`HAProxy uses ${host}`, async () => {
      const rows = (await this.#ask('show stat')).split('\n').map((line) => line.split(','));
      const servers = rows.filter(([, name = '']) => name.startsWith(`${host}:`));
      return servers.every((columns) => columns[STATUS]?.startsWith('UP'));
    });
  }

  async #ask(command: string): Promise<string> {
    const socket = connect(this.#control);
    socket.end(`${command}\n`);
    return text(socket);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit', { signal: AbortSignal.timeout(STOP_MS) });
    this.#child.kill('SIGKILL');
    await exited;
  }
}

function configuration(frontends: readonly Frontend[], control: string): string {
  const lines = [
    'global',
    `  stats socket ${control}`,
    'defaults',
    '  mode tcp',
    '  timeout connect 5s',
    '  timeout client 1h',
    '  timeout server 1h',
    '  timeout check 2s',
  ];
  frontends.forEach(({ bind, servers, hasComponents = false, sendsProxyHeaders = false }, n) => {
    lines.push(`frontend front${n}`, `  bind ${bind}`, `  default_backend back${n}`);
    lines.push(`backend back${n}`);
    if (hasComponents) {
      lines.push('  option httpchk GET /readyz');
      lines.push(
        '  option srvtcpka',
        '  srvtcpka-idle 5s',
        '  srvtcpka-intvl 2s',
        '  srvtcpka-cnt 3',
      );
      lines.push('  default-server check check-ssl verify none inter 1s fall 2 tcp-ut 10s');
    }
    if (sendsProxyHeaders) lines.push('  default-server send-proxy-v2');
    for (const server of servers) lines.push(`  server ${nameOf(server)} ${server}`);
  });
  return `${lines.join('\n')}\n`;
}

/** A name that HAProxy accepts, from which the host can be told. */
function nameOf(server: string): string {
  return server.replaceAll(/[^A-Za-z0-9.:_-]/g, '_');
}

async function accepts(address: string): Promise<boolean> {
  const [host, port] = address.split(':');
  const socket = address.startsWith(UNIX)
    ? connect(address.slice(UNIX.length))
    : connect({ host, port: Number(port) });
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
