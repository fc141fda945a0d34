import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { CliTest } from '../cli-test.ts';
import type { TestCli } from '../test-cli.ts';

/** Conversations that another session is to go on with. */
export function conversationCases(test: CliTest): void {
  test('goes on with a conversation in another session, from its transcripts alone', async ({
    cli,
  }) => {
    cli.script();
    await cli.run('before it was resumed');
    for (const prompt of ['resumed', 'resumed again']) {
      await cli.reopen({ conversation: cli.session.conversation() });
      expect(await cli.run(prompt)).toMatchObject({ result: `You said: ${prompt}` });
      expect(cli.lastRequest()).toContain('before it was resumed');
    }
  });

  test('carries its transcript along where its files are not kept', async ({ cli }) => {
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
    await cli.reopen();
  });

  test('begins a conversation where the transcript of the earlier one is not there', async ({
    cli,
  }) => {
    cli.script();
    await cli.run('before it was lost');
    const conversation = cli.session.conversation();
    await cli.session.close();
    await rm(join(cli.world.home, cli.driver.transcripts), { recursive: true });
    await beginsAnew(cli, conversation);
  });

  test('begins a conversation where the earlier one is not known', async ({ cli }) => {
    cli.script();
    await cli.run('before it was lost');
    await beginsAnew(cli, cli.driver.unknownConversation);
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
