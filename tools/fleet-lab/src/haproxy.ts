import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { until } from '@svc/service-driver';

const STOP_MS = 10_000;
const UNIX = 'unix@';

/** An address on which HAProxy forwards TCP connections. Addresses are `10.0.0.5:8443` or `unix@/run/x.sock`. */
export interface Frontend {
  readonly bind: string;
  readonly servers: readonly string[];
  /** Whether a server is used only while `GET /readyz` over HTTPS answers 200. */
  readonly checksReadiness?: boolean;
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

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** Starts it, and waits until every frontend accepts connections from here. */
  static async start({ name, directory, launcher, frontends }: HaProxyOptions): Promise<HaProxy> {
    const file = join(directory, `haproxy-${name}.cfg`);
    await writeFile(file, configuration(frontends));
    const [program = '', ...words] = [...launcher, 'haproxy', '-db', '-f', file];
    await using log = await open(join(directory, `haproxy-${name}.log`), 'a');
    const child = spawn(program, words, { stdio: ['ignore', log.fd, log.fd] });
    const proxy = new HaProxy(child);
    for (const { bind } of frontends) {
      await until(`HAProxy listens on ${bind}`, async () => {
        if (child.exitCode !== null) throw new Error(`HAProxy ended with ${child.exitCode}`);
        return accepts(bind);
      });
    }
    return proxy;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit', { signal: AbortSignal.timeout(STOP_MS) });
    this.#child.kill('SIGKILL');
    await exited;
  }
}

function configuration(frontends: readonly Frontend[]): string {
  const lines = [
    'defaults',
    '  mode tcp',
    '  timeout connect 5s',
    '  timeout client 1h',
    '  timeout server 1h',
    '  timeout check 2s',
  ];
  frontends.forEach(({ bind, servers, checksReadiness = false }, n) => {
    lines.push(`frontend front${n}`, `  bind ${bind}`, `  default_backend back${n}`);
    lines.push(`backend back${n}`);
    if (checksReadiness) {
      lines.push('  option httpchk GET /readyz');
      lines.push(
        '  option srvtcpka',
        '  srvtcpka-idle 5s',
        '  srvtcpka-intvl 2s',
        '  srvtcpka-cnt 3',
      );
      lines.push('  default-server check check-ssl verify none inter 1s fall 2 tcp-ut 10s');
    }
    servers.forEach((server, index) => void lines.push(`  server s${index} ${server}`));
  });
  return `${lines.join('\n')}\n`;
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
