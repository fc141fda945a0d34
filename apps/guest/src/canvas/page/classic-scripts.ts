import { Script } from 'node:vm';
import { type BrowserWindow, PropertySymbol } from 'happy-dom';

/** How the DOM library wraps a classic script. */
const HEAD = '(function anonymous($happy_dom) {';
const TAIL = '})';

type Evaluate = (code: string, options: { filename: string }) => unknown;

/**
 * Runs the scripts of a window as browsers do, with the names that one declares visible to those after it. The DOM
 * library wraps each in a function, which hides them.
 */
export function shareDeclarations(window: BrowserWindow): void {
  const target = window as unknown as Record<symbol, Evaluate>;
  const inherited = target[PropertySymbol.evaluateScript];
  target[PropertySymbol.evaluateScript] = (code, options) => {
    if (!code.startsWith(HEAD) || !code.endsWith(TAIL)) {
      return inherited?.call(window, code, options);
    }
    const script = new Script(code.slice(HEAD.length, -TAIL.length), options);
    return (helpers: unknown) => {
      // The library replaces `import(…)` in the text by a call of this object.
      Object.assign(window, { $happy_dom: helpers });
      script.runInContext(window);
    };
  };
}
