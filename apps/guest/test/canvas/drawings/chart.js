const values = [12, 30, 22, 45, 38, 60, 52];
ctx.fillStyle = 'white';
ctx.fillRect(0, 0, width, height);
ctx.strokeStyle = '#ddd';
ctx.font = '12px sans-serif';
ctx.textAlign = 'right';
for (let line = 0; line <= 6; line += 1) {
  const y = 210.5 - line * 30;
  ctx.beginPath();
  ctx.moveTo(40, y);
  ctx.lineTo(310, y);
  ctx.stroke();
  ctx.fillStyle = '#666';
  ctx.fillText(String(line * 10), 34, y + 4);
}
for (const [index, value] of values.entries()) {
  const bar = ctx.createLinearGradient(0, 210 - value * 3, 0, 210);
  bar.addColorStop(0, '#4361ee');
  bar.addColorStop(1, '#4cc9f0');
  ctx.fillStyle = bar;
  ctx.fillRect(50 + index * 37, 210 - value * 3, 26, value * 3);
}
ctx.textAlign = 'center';
ctx.fillStyle = '#222';
ctx.font = 'bold 14px sans-serif';
ctx.fillText('Requests per day', 175, 20);
