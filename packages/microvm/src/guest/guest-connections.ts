import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { GUEST_LINK } from '@svc/contract';
import type { MicrovmDownload, MicrovmExecRequest, MicrovmExecResult } from '../microvm.ts';
import { AgentConnections } from './agent-connections.ts';
import { GuestChannel } from './channel/guest-channel.ts';
import { CommandKiller } from './commands/command-killer.ts';
import { runCommand } from './commands/run-command.ts';
import { SshConnection } from './commands/ssh-connection.ts';
import { PortConnections } from './port-connections.ts';
import { GuestTree } from './tree/guest-tree.ts';

const { ssh: SSH_PORT, channel: CHANNEL_PORT, agent: AGENT_PORT } = GUEST_LINK.guestPorts;

export interface GuestConnectionsOptions {
  /** Address that reaches the guest from this machine. */
  readonly host: string;
  /** Token of the guest channel. */
  readonly token: string;
  readonly privateKey: string;
  /** The guest's SSH host key, in SSH's wire format. */
  readonly hostKey: Buffer;
}

/** All connections into one guest: SSH for commands, the guest channel for files, settings and ports, the agent runtime. */
export class GuestConnections {
  /** Port of `host` that reaches the guest's SSH server. */
  readonly sshPort = SSH_PORT;
  readonly #ssh: SshConnection;
  readonly #channel: GuestChannel;
  readonly #killer: CommandKiller;
  readonly #agent: AgentConnections;
  readonly #ports: PortConnections;
  readonly #trees: GuestTree[] = [];
  readonly #options: GuestConnectionsOptions;

  constructor(options: GuestConnectionsOptions) {
    const { host, token, privateKey, hostKey } = options;
    this.#options = options;
    this.#ssh = new SshConnection({ host, port: SSH_PORT, privateKey, hostKey });
    this.#channel = new GuestChannel({ host, port: CHANNEL_PORT }, token);
    this.#killer = new CommandKiller(this.#channel);
    this.#agent = new AgentConnections({ host, port: AGENT_PORT });
    this.#ports = new PortConnections({ host, port: CHANNEL_PORT }, token);
  }

  /** Opens the SSH connection that all commands share. */
  connect(signal: AbortSignal): Promise<void> {
    return this.#ssh.connect(signal);
  }

  exec(
    request: MicrovmExecRequest,
    env: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<MicrovmExecResult> {
    return runCommand({ ssh: this.#ssh, killer: this.#killer, env }, request, signal);
  }

  /** Ends the commands whose callers left while the guest did not answer. */
  endLeftCommands(): void {
    this.#killer.tryAgain();
  }

  checkDirectory(path: string, signal: AbortSignal): Promise<void> {
    return this.#channel.checkDirectory(path, signal);
  }

  upload(path: string, source: Readable, signal: AbortSignal): Promise<void> {
    return this.#channel.upload(path, source, signal);
  }

  download(path: string, signal: AbortSignal): Promise<MicrovmDownload> {
    return this.#channel.download(path, signal);
  }

  /** A tree whose connections last until these are closed. */
  tree(root: string): GuestTree {
    const { host, token } = this.#options;
    const tree = new GuestTree({ address: { host, port: CHANNEL_PORT }, token, root });
    this.#trees.push(tree);
    return tree;
  }

  setName(hostname: string, signal: AbortSignal): Promise<void> {
    return this.#channel.setName(hostname, signal);
  }

  setClock(signal: AbortSignal): Promise<void> {
    return this.#channel.setClock(signal);
  }

  dialAgent(signal: AbortSignal): Promise<Socket> {
    return this.#agent.dial(signal);
  }

  dialPort(port: number, signal: AbortSignal): Promise<Socket> {
    return this.#ports.dial(port, signal);
  }

  close(): void {
    this.#killer.close();
    this.#ssh.close();
    this.#channel.close();
    this.#agent.close();
    this.#ports.close();
    for (const tree of this.#trees) tree.close();
  }
}
