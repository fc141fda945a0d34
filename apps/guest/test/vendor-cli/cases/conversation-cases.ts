import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { CliTest } from '../cli-test.ts';
import type { TestCli } from '../test-cli.ts';

/** Resuming a conversation in another session. */
export function conversationCases(test: CliTest): void {
  test('resumes a conversation in another session from its transcripts', async ({ cli }) => {
    cli.script();
    await cli.run('before it was resumed');
    for (const prompt of ['resumed', 'resumed again']) {
      await cli.reopen({ conversation: cli.session.conversation() });
      expect(await cli.run(prompt)).toMatchObject({ result: `You said: ${prompt}` });
      expect(cli.lastRequest()).toContain('before it was resumed');
    }
  });

  test('continues a conversation with another model', async ({ cli }) => {
    cli.script();
    await cli.run('before the model changed');
    const conversation = cli.session.conversation();
    await cli.reopen({ conversation, model: cli.driver.otherModel });
    await cli.run('since the model changed');
    expect(cli.server.requests.at(-1)?.body).toMatchObject({ model: cli.driver.otherModel });
    expect(cli.lastRequest()).toContain('before the model changed');
    await cli.reopen({ conversation });
  });

  test('begins a new conversation when the transcript is missing', async ({ cli }) => {
    cli.script();
    await cli.run('before it was lost');
    const conversation = cli.session.conversation();
    await cli.session.close();
    await rm(join(cli.world.home, cli.driver.transcripts), { recursive: true });
    await beginsAnew(cli, conversation);
  });

  test('begins a new conversation when the earlier one is unknown', async ({ cli }) => {
    cli.script();
    await cli.run('before it was lost');
    await beginsAnew(cli, cli.driver.unknownConversation);
  });
}

/** A conversation that carries its transcript. Leaves a session open whose files are not saved. */
export function transcriptCases(test: CliTest): void {
  test('carries its transcript in the conversation where files are not saved', async ({ cli }) => {
    const setup = { mode: 'one_shot' } as const;
    await cli.reopen(setup);
    cli.script();
    await cli.run('before it moved');
    for (const prompt of ['moved', 'moved again']) {
      const conversation = cli.session.conversation();
      await cli.session.close();
      await rm(join(cli.world.home, cli.driver.transcripts), { recursive: true });
      await cli.reopen({ ...setup, conversation });
      expect(await cli.run(prompt)).toMatchObject({ result: `You said: ${prompt}` });
      expect(cli.lastRequest()).toContain('before it moved');
    }
  });
}

async function beginsAnew(cli: TestCli, conversation: string): Promise<void> {
  const logged = cli.world.log().length;
  await cli.reopen({ conversation });
  expect(await cli.run('fresh')).toMatchObject({ status: 'completed' });
  expect(cli.lastRequest()).not.toContain('before it was lost');
  expect(cli.session.conversation()).not.toBe(conversation);
  expect(cli.world.log().slice(logged)).toContain(cli.driver.startsAnew);
}
