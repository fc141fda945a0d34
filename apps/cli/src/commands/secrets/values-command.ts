import { Command } from 'commander';
import { readValues } from './read-values.ts';

interface Options {
  readonly file: string;
  readonly key?: string;
}

const HELP = `
The values are read from standard input or a file, never from arguments, which others on the machine
can see. They are NAME=value lines or one JSON object; with --key, the whole input is one value.

  svc secrets set openai --file openai.env
  svc secrets set openai --key LLM_API_KEY < key.txt`;

/** A command that reads values for a bundle. */
export function commandWithValues(
  name: string,
  description: string,
  act: (bundle: string, values: Readonly<Record<string, string>>) => Promise<void>,
): Command {
  return new Command(name)
    .description(description)
    .argument('<bundle>', 'name of the bundle')
    .option('-f, --file <path>', 'file to read; - is standard input', '-')
    .option('-k, --key <name>', 'take the whole input as the value of this one key')
    .addHelpText('after', HELP)
    .action(async (bundle: string, { file, key }: Options) => {
      await act(bundle, await readValues(file, key));
    });
}
