import { Command } from 'commander';

/** `svc doctor`: whether this machine can run the service, and how to mend what is wrong. */
export function doctorCommand(): Command {
  return new Command('doctor')
    .description('check this machine and the service on it; exit code 1 when something fails')
    .option('--json', 'print the findings as JSON')
    .action(async ({ json }: { json?: boolean }) => {
      const { examine } = await import('../doctor/examine.ts');
      const findings = await examine();
      if (json) {
        console.log(JSON.stringify(findings, null, 2));
      } else {
        const { findingsText } = await import('../doctor/findings-text.ts');
        console.log(findingsText(findings));
      }
      if (findings.some(({ verdict }) => verdict === 'fail')) process.exitCode = 1;
    });
}
