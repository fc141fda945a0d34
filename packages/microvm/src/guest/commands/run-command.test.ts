import { once } from 'node:events';
import type ssh2 from 'ssh2';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type SshGuest, startSshGuest } from '../../../test/ssh-guest.ts';
import { CommandKiller } from './command-killer.ts';
import { runCommand } from './run-command.ts';

/** The packets about channels that the guest received, by their names. */
const received: string[] = [];
let guest: SshGuest;

beforeAll(async () => {
  guest = await startSshGuest({
    debug: (text) => {
      const [, name] = /Inbound: (CHANNEL_\w+)/.exec(text) ?? [];
      if (name !== undefined) received.push(name);
    },
    onExec: (channel, command) => {
      if (command.endsWith('flood')) flood(channel);
      else {
        channel.exit(0);
        channel.end();
      }
    },
  });
});

afterAll(() => guest.close());

const KIB = Buffer.alloc(32 * 1024, 'x');

function flood(channel: ssh2.ServerChannel): void {
  const more = () => {
    while (channel.writable && channel.write(KIB));
  };
  channel.on('drain', more);
  more();
}

/** A guest that does not end the command: its output continues until the channel is closed. */
const killer = new CommandKiller({ kill: async () => undefined });

function run(command: string, onOutput: () => void | Promise<void>, signal: AbortSignal) {
  return runCommand({ ssh: guest.connection, killer, env: {} }, { command, onOutput }, signal);
}

// The guest's SSH server ends the connection, and with it all commands, when it receives one for a channel that is gone.
test.each(['flowing', 'held back'])(
  'sends nothing after the close of a channel whose output is %s',
  async (output) => {
    const caller = new AbortController();
    const begun = Promise.withResolvers<void>();
    let chunks = 0;
    const onOutput = () => {
      chunks += 1;
      if (chunks === 100) begun.resolve();
      return output === 'flowing' || chunks < 100
        ? undefined
        : once(caller.signal, 'abort').then(() => undefined);
    };
    const flooded = run('flood', onOutput, caller.signal);
    await begun.promise;
    const before = received.length;
    const reason = new Error('the caller is gone');
    caller.abort(reason);
    await expect(flooded).rejects.toBe(reason);
    // Everything that was sent before has arrived when this has ended.
    expect(await run('true', () => undefined, new AbortController().signal)).toEqual({
      exitCode: 0,
    });
    const closed = received.indexOf('CHANNEL_CLOSE', before);
    const opened = received.indexOf('CHANNEL_OPEN', closed);
    expect(closed).toBeGreaterThanOrEqual(before);
    expect(received.slice(closed, opened)).toEqual(['CHANNEL_CLOSE']);
  },
);
