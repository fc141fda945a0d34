import type { FilePart, ModelMessage, ToolModelMessage, ToolResultPart } from 'ai';
import type { ToolImage } from '../../tools/tool.ts';

type ContentOutput = Extract<ToolResultPart['output'], { type: 'content' }>;
type ContentPart = ContentOutput['value'][number];
type ImagePart = Extract<ContentPart, { type: 'file' }>;

const LEFT_OUT = '[The picture was left out.]';

/** A picture as part of a tool's result. */
export function imagePart({ mediaType, data }: ToolImage): ImagePart {
  return { type: 'file', mediaType, data: { type: 'data', data } };
}

/** The messages with only the newest `count` pictures. A note replaces each of the others. */
export function withNewestImages(messages: readonly ModelMessage[], count: number): ModelMessage[] {
  let left = count;
  return messages
    .toReversed()
    .map((message) =>
      mapImages(message, (image) => {
        left -= 1;
        return left >= 0 ? image : { type: 'text', text: LEFT_OUT };
      }),
    )
    .reverse();
}

/**
 * The messages with pictures in a user's message after the results that contain them: some dialects have only text in
 * results.
 */
export function withImagesFromUser(messages: readonly ModelMessage[]): ModelMessage[] {
  return messages.flatMap((message) => {
    const images: FilePart[] = [];
    const textOnly = mapImages(message, ({ mediaType, data }) => {
      images.unshift({ type: 'file', mediaType, data });
      return undefined;
    });
    const plain = withPlainText(textOnly);
    if (images.length === 0) return [plain];
    const about = { type: 'text' as const, text: 'What the tool has shown:' };
    return [plain, { role: 'user', content: [about, ...images] }];
  });
}

/** Replaces each picture of a message, from the last to the first; undefined removes it. */
function mapImages(
  message: ModelMessage,
  replace: (image: ImagePart) => ContentPart | undefined,
): ModelMessage {
  if (message.role !== 'tool' || !message.content.some(hasImage)) return message;
  const content = message.content
    .toReversed()
    .map((part): ToolModelMessage['content'][number] => {
      if (part.type !== 'tool-result' || part.output.type !== 'content') return part;
      const value = part.output.value
        .toReversed()
        .flatMap((piece) => (piece.type === 'file' ? (replace(piece) ?? []) : [piece]))
        .reverse();
      return { ...part, output: { ...part.output, value } };
    })
    .reverse();
  return { ...message, content };
}

function hasImage(part: ToolModelMessage['content'][number]): boolean {
  return (
    part.type === 'tool-result' &&
    part.output.type === 'content' &&
    part.output.value.some(({ type }) => type === 'file')
  );
}

/** Results without pictures as text, which is what every dialect has. */
function withPlainText(message: ModelMessage): ModelMessage {
  if (message.role !== 'tool') return message;
  const content = message.content.map((part): ToolModelMessage['content'][number] => {
    if (part.type !== 'tool-result' || part.output.type !== 'content') return part;
    return { ...part, output: { type: 'text', value: textOf(part.output) } };
  });
  return { ...message, content };
}

/** The text of a result with parts. */
export function textOf({ value }: ContentOutput): string {
  return value.flatMap((part) => (part.type === 'text' ? [part.text] : [LEFT_OUT])).join('\n');
}
