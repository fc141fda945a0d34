ctx.font = '18px sans-serif';
ctx.strokeStyle = '#bbb';
ctx.beginPath();
ctx.moveTo(160, 0);
ctx.lineTo(160, 240);
ctx.stroke();
for (const [index, align] of ['left', 'center', 'right', 'start', 'end'].entries()) {
  ctx.textAlign = align;
  ctx.fillText(`align ${align}`, 160, 30 + index * 25);
}
ctx.textAlign = 'left';
for (const [index, baseline] of ['top', 'middle', 'alphabetic', 'bottom'].entries()) {
  ctx.textBaseline = baseline;
  ctx.fillText(baseline, 10 + index * 75, 190);
}
