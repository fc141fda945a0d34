ctx.lineWidth = 18;
ctx.strokeStyle = '#3d405b';
for (const [index, cap] of ['butt', 'round', 'square'].entries()) {
  ctx.lineCap = cap;
  ctx.beginPath();
  ctx.moveTo(30, 30 + index * 35);
  ctx.lineTo(290, 30 + index * 35);
  ctx.stroke();
}
for (const [index, join] of ['miter', 'round', 'bevel'].entries()) {
  ctx.lineJoin = join;
  ctx.beginPath();
  ctx.moveTo(30 + index * 95, 220);
  ctx.lineTo(65 + index * 95, 150);
  ctx.lineTo(100 + index * 95, 220);
  ctx.stroke();
}
