const gradient = ctx.createLinearGradient(0, 0, width, height);
gradient.addColorStop(0, '#ff006e');
gradient.addColorStop(0.5, '#ffbe0b');
gradient.addColorStop(1, '#3a86ff');
ctx.fillStyle = gradient;
ctx.fillRect(10, 10, width - 20, height - 20);
