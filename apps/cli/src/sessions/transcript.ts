import { styleText } from 'node:util';
import type { ServerFrame, SessionFrame } from '@svc/sdk';
import { callText, resultText } from './tool-text.ts';

type Style = Parameters<typeof styleText>[0];

/** Control characters other than tab and newline. */
const CONTROL_CHARACTERS = /[^\P{Cc}\n\t]/gu;

/**
 * Removes the control characters from text of a sandbox, so that it cannot move the cursor, set the title of the
 * terminal or make it send input. Safe for chunks of a stream, wherever they are split.
 */
export function stripControlCharacters(text: string): string {
  return text.replace(CONTROL_CHARACTERS, '');
}

/**
 * Prints the frames of a session: the agent's text, streamed, on `answers`; everything else, such as tool calls, dimmed
 * on `notes`. Both may be the same stream.
 */
export class Transcript {
  readonly #answers: NodeJS.WriteStream;
  readonly #notes: NodeJS.WriteStream;
  /** Whether the last answer ended in the middle of a line. */
  #isInLine = false;
  /** Whether text of the current message has been streamed. */
  #hasStreamed = false;
  /** Whether text of the current task has been printed. */
  #hasAnswered = false;
  #tokens = { input: 0, output: 0 };

  constructor(
    answers: NodeJS.WriteStream = process.stdout,
    notes: NodeJS.WriteStream = process.stderr,
  ) {
    this.#answers = answers;
    this.#notes = notes;
  }

  show(frame: SessionFrame): void {
    switch (frame.type) {
      case 'ready': {
        const how = frame.resumed ? ', resumed' : '';
        this.note(`connected to ${frame.agent ?? 'an agent'} on ${frame.model}${how}`);
        if (frame.unanswered !== undefined)
          this.note(
            'the sandbox was lost; the session goes on in another, after its last saved task',
          );
        break;
      }
      case 'task_started':
        this.#hasAnswered = false;
        this.#hasStreamed = false;
        this.#tokens = { input: 0, output: 0 };
        break;
      case 'text_delta':
        this.#answer(frame.data);
        this.#hasStreamed = true;
        break;
      case 'message':
        if (frame.role === 'assistant' && !this.#hasStreamed) this.#answer(frame.content);
        this.#endLine();
        this.#hasStreamed = false;
        break;
      case 'tool_call':
        this.note(`→ ${callText(frame.name, frame.arguments)}`);
        break;
      case 'tool_result':
        this.note(indent(resultText(frame.content)), frame.is_error ? 'red' : 'dim');
        this.#hasStreamed = false;
        break;
      case 'usage':
        this.#tokens.input += frame.input_tokens;
        this.#tokens.output += frame.output_tokens;
        break;
      case 'task_completed':
        this.#completed(frame);
        break;
      case 'stdout':
      case 'stderr':
        this.#write(frame.type === 'stdout' ? this.#answers : this.#notes, frame.data);
        break;
      case 'exit':
        this.note(`exit code ${frame.exit_code}`);
        break;
      case 'error':
        this.note(`${frame.code}: ${frame.message}`, 'red');
        break;
      case 'system':
        this.note(systemText(frame));
        break;
      default: // Pongs, images, and the frames of newer services are not shown.
    }
  }

  /** Prints a line on `notes`, without control characters. */
  note(text: string, style: Style = 'dim'): void {
    this.#endLine();
    const stream = this.#notes;
    const lines = stripControlCharacters(text).split('\n');
    stream.write(`${lines.map((line) => styleText(style, line, { stream })).join('\n')}\n`);
  }

  #completed({ status, result }: ServerFrame & { type: 'task_completed' }): void {
    // An agent that sends no text during the task is heard only through its result.
    if (status === 'completed' && !this.#hasAnswered && result !== '') this.#answer(result);
    this.#endLine();
    const { input, output } = this.#tokens;
    const spent = input + output === 0 ? '' : ` · ${input} tokens in, ${output} out`;
    const isFailed = status === 'failed';
    const why = isFailed && result !== '' ? `: ${result}` : '';
    this.note(`${status}${why}${spent}`, isFailed ? 'red' : 'dim');
  }

  #answer(text: string): void {
    this.#hasAnswered = true;
    this.#write(this.#answers, text);
  }

  #write(stream: NodeJS.WriteStream, text: string): void {
    const shown = stripControlCharacters(text);
    if (shown === '') return;
    stream.write(shown);
    this.#isInLine = !shown.endsWith('\n');
  }

  #endLine(): void {
    if (this.#isInLine) this.#answers.write('\n');
    this.#isInLine = false;
  }
}

function systemText(frame: ServerFrame & { type: 'system' }): string {
  if (frame.event === 'config_update')
    return `new secret values are in use: ${frame.keys.join(', ')}`;
  return `the service asked the agent to stop: ${frame.reason}`;
}

function indent(text: string): string {
  return text.replaceAll(/^/gm, '  ');
}
