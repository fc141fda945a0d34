import { Command } from 'commander';

/** `svc doctor`: checks whether this machine can run the service, and suggests fixes. */
export function doctorCommand(): Command {
  return new Command('doctor')
    .description('check this machine and its service; exit code 1 if a check fails')
    .option('--json', 'print the findings as JSON')
    .action(async ({ json }: { json?: boolean }) => {
      const [{ examine }, { findingsText }] = await Promise.all([
        import('../doctor/examine.ts'),
        import('../doctor/findings.ts'),
      ]);
      const findings = await examine();
      console.log(json ? JSON.stringify(findings, null, 2) : findingsText(findings));
      if (findings.some(({ verdict }) => verdict === 'fail')) process.exitCode = 1;
    });
}
