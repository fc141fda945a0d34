ctx.lineWidth = 4;
for (let index = 0; index < 8; index += 1) {
  ctx.strokeStyle = `hsl(${index * 45}, 70%, 45%)`;
  ctx.beginPath();
  ctx.moveTo(20, 120);
  ctx.bezierCurveTo(110, index * 30, 210, 240 - index * 30, 300, 120);
  ctx.stroke();
}
