"""Takizawa, Nomura and Matsuba: packing for utilization with predicted run times, against chance and a bound."""
