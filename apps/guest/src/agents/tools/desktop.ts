import {
  DESKTOP_TOOLKIT,
  type Desktop,
  DesktopError,
  runDesktopTool,
} from '../../desktop/index.ts';
import { type AgentTool, defineTool, done, failed } from './tool.ts';

/** The tools that use a desktop. */
export function desktopTools(desktop: Desktop): AgentTool[] {
  return DESKTOP_TOOLKIT.map((tool) =>
    defineTool({
      name: tool.name,
      description: tool.description,
      input: tool.input,
      async run(input, signal) {
        try {
          const { text, image } = await runDesktopTool(tool, desktop, input, signal);
          if (image === undefined) return done(text);
          const { mediaType, data } = image;
          return { ...done(text), image: { mediaType, data: data.toString('base64') } };
        } catch (error) {
          if (!(error instanceof DesktopError)) throw error;
          return failed([...(await desktop.notices()), error.message].join('\n'));
        }
      },
    }),
  );
}
