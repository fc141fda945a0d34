const modes = [
  'multiply',
  'screen',
  'overlay',
  'darken',
  'lighten',
  'color-dodge',
  'hard-light',
  'difference',
  'hue',
  'luminosity',
];
for (const [index, mode] of modes.entries()) {
  const [x, y] = [(index % 5) * 64, Math.floor(index / 5) * 120];
  ctx.globalCompositeOperation = 'source-over';
  ctx.fillStyle = '#e63946';
  ctx.fillRect(x + 4, y + 10, 40, 70);
  ctx.globalCompositeOperation = mode;
  ctx.fillStyle = '#2a9d8f';
  ctx.fillRect(x + 20, y + 40, 40, 70);
}
