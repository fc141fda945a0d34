import { Command } from 'commander';

/** `svc secrets rotate-master-key`: for the operator, on the machine of a control plane. */
export function rotateMasterKeyCommand(): Command {
  return new Command('rotate-master-key')
    .description('wrap every stored secret with another master key; for the operator')
    .addHelpText(
      'after',
      `
The service may be running. Cut short, it is finished by the next run.

Where SVC_MASTER_KEY is set, restart every control plane with the new key there and the old one in
SVC_MASTER_KEY_PREVIOUS first; then run this with the same two. Otherwise the key is made here and
kept in the data directory.`,
    )
    .action(async () => {
      const { rotateStoredMasterKey } = await import('../../service/rotate-master-key.ts');
      await rotateStoredMasterKey();
    });
}
